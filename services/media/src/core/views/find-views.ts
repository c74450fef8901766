import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { monthBefore } from '../tokens/usage.store.ts'
import { findSummaries, type ViewSummary } from './views.store.ts'

/** Views of clips by id, for their owners; empty while none are counted. */
export const viewsOf = async (
  { config, now }: Pick<Deps, 'config' | 'now'>,
  db: Kysely<DB>,
  ids: readonly string[],
): Promise<Map<string, ViewSummary>> =>
  config.views.areCounted && ids.length > 0 ? findSummaries(db, ids, monthBefore(now())) : new Map()
