// Announcements of changes, for the recorder of events (core/webhooks). Stores name the users that a transaction has
// locked or is about to create. Without a receiver, which is usual, an announcement costs one look-up in a map.
import type { Kysely, Transaction } from 'kysely'
import type { DB } from './tables.ts'

/** Facts that the differences of a user do not show. */
export type Note =
  /** Why sessions of the user end in this transaction. */
  | { userId: string; sessionsEnd: SessionEnd }
  /** Sessions of the user that have ended, as a JSON array. */
  | { userId: string; endedSessions: string; count: number }
  | { userId: string; newSession: object }
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
  /** Whether a receiver wants the event, as this process knows. */
  wants(event: string): boolean
  /** Remembers the users as they are now, for a comparison before the commit; those that do not exist yet are `new`. */
  begin(trx: Transaction<DB>, userIds: readonly string[], state?: 'new'): Promise<void>
  /** Whether the transaction has begun with this user. */
  follows(db: Kysely<DB>, userId: string): boolean
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

/** Whether events are wanted or stored, as this process knows, so that a change without a lock must take one. */
export const isWatched = (db: Kysely<DB>): boolean => watchOf(db) !== undefined

/** Whether a receiver wants the event: another one is not worth a statement. */
export const wantsEvent = (db: Kysely<DB>, event: string): boolean => watchOf(db)?.wants(event) ?? false

/** Call it with the user's row locked, before the first change. */
export const beginChange = (trx: Transaction<DB>, userId: string): Promise<void> => beginChanges(trx, [userId])

export async function beginChanges(trx: Transaction<DB>, userIds: readonly string[]): Promise<void> {
  await watchOf(trx)?.begin(trx, userIds)
}

/** Call it before the user is inserted. */
export async function beginCreation(trx: Transaction<DB>, userIds: readonly string[]): Promise<void> {
  await watchOf(trx)?.begin(trx, userIds, 'new')
}

export async function noteChange(trx: Transaction<DB>, note: Note): Promise<void> {
  await watchOf(trx)?.note(trx, note)
}

/** Whether this transaction writes the user's events before its commit. */
export const isFollowed = (db: Kysely<DB>, userId: string): db is Transaction<DB> =>
  watchOf(db)?.follows(db, userId) ?? false

/** Call it after the commit of events that the caller's own statement wrote. */
export const announceEvents = (db: Kysely<DB>): void => watchOf(db)?.tell()
