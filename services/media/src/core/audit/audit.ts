// The audit log: an entry for each act of an admin on tokens and on clips of others, and for each command that acts. It
// is stored in the transaction of the act. Acts of owners have none. Tests: test/acts-of-admins.test.ts.
import { jsonb } from '@services/common/database/pool'
import type { Kysely } from 'kysely'
import type { AuditAction, DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { insertEntry, setDetails } from './audit.store.ts'

/** Token of an admin, or account of the machine whose command acts. */
export type Actor = { origin: 'admin'; tokenId: string } | { origin: 'cli'; operator: string }

export interface Act {
  action: AuditAction
  /** Id of the clip or token. */
  target?: string
  /** Ids, names of fields and numbers; never texts of a clip, which outlive it here. */
  details?: object
}

/** Records an act; returns the id of its entry. */
export async function recordAct(
  { newId, now }: Pick<Deps, 'newId' | 'now'>,
  db: Kysely<DB>,
  by: Actor,
  { action, target, details = {} }: Act,
): Promise<string> {
  const id = newId()
  const [tokenId, operator] = by.origin === 'admin' ? [by.tokenId, null] : [null, by.operator]
  const actor = { origin: by.origin, token_id: tokenId, operator }
  const entry = { id, action, target: target ?? null, details: jsonb(details), created_at: now() }
  await insertEntry(db, { ...entry, ...actor })
  return id
}

/** Step of a transaction that records the act of an admin on a clip of others; undefined for the owner of the clip. */
export function auditAdmin(
  deps: Pick<Deps, 'newId' | 'now'>,
  token: { id: string },
  { id, tokenId }: { id: string; tokenId: string | null },
  act: Omit<Act, 'target'>,
): ((trx: Kysely<DB>) => Promise<unknown>) | undefined {
  if (token.id === tokenId) return undefined
  return (trx) => recordAct(deps, trx, { origin: 'admin', tokenId: token.id }, { ...act, target: id })
}

/** Completes the entry of a long act with its result: it was recorded before its first change. */
export const completeAct = (db: Kysely<DB>, id: string, details: object): Promise<void> => setDetails(db, id, details)
