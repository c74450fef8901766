// The audit log: an entry for each command that acts, and for each act of an admin on tokens, the service and clips of
// others. It is stored in the transaction of the act. Acts of owners have none. Tests: test/acts-of-admins.test.ts.
import { jsonb } from '@services/common/database/pool'
import type { Kysely } from 'kysely'
import type { AuditAction, DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { insertEntries, setDetails } from './audit.store.ts'

/** Token of an admin, with the address of its client if that is known. */
export interface AdminActor {
  origin: 'admin'
  tokenId: string
  address: string | null
}

/** Admin, or account of the machine whose command acts. */
export type Actor = AdminActor | { origin: 'cli'; operator: string }

export interface Act {
  action: AuditAction
  /** Id of the clip, token or dead letter. */
  target?: string
  /** Ids, names of fields and numbers; never texts of a clip, which outlive it here. */
  details?: object
}

export type SubjectKind = 'clip' | 'album' | 'token' | 'dead_letter' | 'storage'

/** Subjects of acts. */
export const SUBJECT_OF: Record<AuditAction, SubjectKind> = {
  token_created: 'token',
  token_changed: 'token',
  token_revoked: 'token',
  sessions_ended: 'token',
  clip_changed: 'clip',
  clip_deleted: 'clip',
  clip_moderated: 'clip',
  links_created: 'clip',
  links_ended: 'clip',
  album_links_created: 'album',
  album_links_ended: 'album',
  album_changed: 'album',
  album_deleted: 'album',
  dead_letter_retried: 'dead_letter',
  dead_letter_deleted: 'dead_letter',
  files_repaired: 'storage',
  storage_check_begun: 'storage',
  scans_queued: 'storage',
}

/** Records an act; returns the id of its entry. */
export async function recordAct(
  deps: Pick<Deps, 'newId' | 'now'>,
  db: Kysely<DB>,
  by: Actor,
  act: Act,
): Promise<string> {
  const entry = toEntry(deps, by, act)
  await insertEntries(db, [entry])
  return entry.id
}

/** Records the same act on many targets, in one statement. */
export async function recordActs(
  deps: Pick<Deps, 'newId' | 'now'>,
  db: Kysely<DB>,
  by: Actor,
  { targets, ...act }: Omit<Act, 'target'> & { targets: readonly string[] },
): Promise<void> {
  if (targets.length === 0) return
  const entries = targets.map((target) => toEntry(deps, by, { ...act, target }))
  await insertEntries(db, entries)
}

function toEntry({ newId, now }: Pick<Deps, 'newId' | 'now'>, by: Actor, { action, target, details = {} }: Act) {
  const actor =
    by.origin === 'admin'
      ? { origin: by.origin, token_id: by.tokenId, operator: null, address: by.address }
      : { origin: by.origin, token_id: null, operator: by.operator, address: null }
  return { id: newId(), action, target: target ?? null, details: jsonb(details), created_at: now(), ...actor }
}

/** Step of a transaction that records the act of an admin on a clip of others; undefined for the owner of the clip. */
export function auditAdmin(
  deps: Pick<Deps, 'newId' | 'now'>,
  by: AdminActor,
  { id, tokenId }: { id: string; tokenId: string | null },
  act: Omit<Act, 'target'>,
): ((trx: Kysely<DB>) => Promise<unknown>) | undefined {
  if (by.tokenId === tokenId) return undefined
  return (trx) => recordAct(deps, trx, by, { ...act, target: id })
}

/** Completes the entry of a long act with its result: it was recorded before its first change. */
export const completeAct = (db: Kysely<DB>, id: string, details: object): Promise<void> => setDetails(db, id, details)
