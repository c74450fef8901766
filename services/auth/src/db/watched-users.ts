// Announcements of changes, for the recorder of events (core/webhooks). Stores name the users that a transaction has
// locked or is about to create. Without a receiver, which is usual, an announcement costs one look-up in a map.
import type { Kysely, Transaction } from 'kysely'
import type { DB } from './tables.ts'

/** Facts that the differences of a user do not show. */
export type Note =
  /** Why sessions of the user end in this transaction. */
  | { userId: string; sessionsEnd: SessionEnd }
  /** An event beside the differences. */
  | { userId: string | null; event: string; about: object }

export type SessionEnd =
  | 'signed_out'
  | 'ended_by_admin'
  | 'password_changed'
  | 'second_factor_proven'
  | 'identity_unlinked'
  | 'passkey_removed'
  | 'refresh_token_reused'
  | 'account_taken_over'
  | 'user_deleted'
  | 'expired'

export interface UserWatch {
  isOn(): boolean
  /** Remembers the user as it is now, for a comparison before the commit; a user that does not exist yet is `new`. */
  begin(trx: Transaction<DB>, userId: string, state?: 'new'): Promise<void>
  /** Whether the transaction compares this user. */
  compares(db: Kysely<DB>, userId: string): boolean
  note(trx: Transaction<DB>, note: Note): Promise<void>
  /** Events were committed that no comparison wrote. */
  tell(): void
}

/** Keyed by the adapter, which a database handle shares with its transactions. */
const watches = new WeakMap<object, UserWatch>()

const watchOf = (db: Kysely<DB>): UserWatch | undefined => {
  const watch = watches.get(db.getExecutor().adapter)
  return watch?.isOn() ? watch : undefined
}

export const watchUsers = (db: Kysely<DB>, watch: UserWatch): void => void watches.set(db.getExecutor().adapter, watch)

/** Whether events are wanted, so that a change without a lock must take one. */
export const isWatched = (db: Kysely<DB>): boolean => watchOf(db) !== undefined

/** Call it with the user's row locked, before the first change. */
export async function beginChange(trx: Transaction<DB>, userId: string): Promise<void> {
  await watchOf(trx)?.begin(trx, userId)
}

/** Call it before the user is inserted. */
export async function beginCreation(trx: Transaction<DB>, userIds: readonly string[]): Promise<void> {
  const watch = watchOf(trx)
  if (watch) for (const id of userIds) await watch.begin(trx, id, 'new')
}

export async function noteChange(trx: Transaction<DB>, note: Note): Promise<void> {
  await watchOf(trx)?.note(trx, note)
}

/** Whether events are wanted of a change that no comparison of this handle will show. */
export function isUnseen(db: Kysely<DB>, userId: string): boolean {
  const watch = watchOf(db)
  return watch !== undefined && !watch.compares(db, userId)
}

/** Call it after the commit of events that the caller's own statement wrote. */
export const announceEvents = (db: Kysely<DB>): void => watchOf(db)?.tell()
