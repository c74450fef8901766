// Outcomes of requests with an Idempotency-Key, so that a repeat does nothing twice. Requests that add clips:
// ingest/accept/begin-request.ts; others: answer-once.ts.
import { jsonb } from '@services/common/database/pool'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely } from 'kysely'
import type { DB, Refusal } from '../../db/tables.ts'

/** Time for which an Idempotency-Key gets the outcome of its first request; then housekeeping deletes it. */
export const KEY_LIFETIME_MS = 86_400_000

export interface KeyedRequest {
  tokenId: string
  route: 'upload' | 'import' | 'views' | 'bulk' | 'albums' | 'tokens'
  key: string
  /** SHA-256 of the whole request: two with one key must be equal. */
  fingerprint: Buffer
}

type ClipOutcome = { clipId: string } | { refusal: Refusal }
type Outcome = ClipOutcome | { answer: object }

export async function findOutcome(db: Kysely<DB>, request: KeyedRequest, since: Date) {
  const row = await db
    .selectFrom('idempotency_keys')
    .select(['fingerprint', 'clip_id', 'refusal'])
    .where(({ and }) => and(keyOf(request)))
    .where('created_at', '>', since)
    .executeTakeFirst()
  if (!row) return undefined
  const outcome: ClipOutcome = row.clip_id === null ? { refusal: row.refusal as Refusal } : { clipId: row.clip_id }
  return { fingerprint: row.fingerprint, outcome }
}

/**
 * Records the outcome. False when another request with this key was first, after `since`; waits for one that is being
 * accepted at this moment.
 */
export async function insertOutcome(
  db: Kysely<DB>,
  request: KeyedRequest,
  outcome: Outcome,
  { now, since }: { now: Date; since: Date },
): Promise<boolean> {
  const values = { fingerprint: request.fingerprint, ...toColumns(outcome), created_at: now }
  const inserted = await db
    .insertInto('idempotency_keys')
    .values({ ...keyOf(request), ...values })
    .onConflict((conflict) =>
      conflict
        .columns(['token_id', 'route', 'key'])
        .doUpdateSet(values)
        .where('idempotency_keys.created_at', '<=', since),
    )
    .returning('key')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Answer of the first request with this key. */
export const findAnswer = (db: Kysely<DB>, request: KeyedRequest) =>
  db
    .selectFrom('idempotency_keys')
    .select(['fingerprint', 'answer'])
    .where(({ and }) => and(keyOf(request)))
    .executeTakeFirst()

export const setAnswer = (db: Kysely<DB>, request: KeyedRequest, answer: object) =>
  db
    .updateTable('idempotency_keys')
    .set({ answer: jsonb(answer) })
    .where(({ and }) => and(keyOf(request)))
    .execute()

/** Replaces the outcome of a clip that failed after it was accepted, unless the key has another clip since. */
export async function replaceOutcome(db: Kysely<DB>, request: KeyedRequest, clipId: string, refusal: Refusal) {
  await db
    .updateTable('idempotency_keys')
    .set(toColumns({ refusal }))
    .where(({ and }) => and(keyOf(request)))
    .where('clip_id', '=', clipId)
    .execute()
}

/** Deletes the outcome, unless the key has another clip since. */
export async function forgetOutcome(db: Kysely<DB>, request: KeyedRequest, clipId: string): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where(({ and }) => and(keyOf(request)))
    .where('clip_id', '=', clipId)
    .execute()
}

const keyOf = ({ tokenId, route, key }: KeyedRequest) => ({ token_id: tokenId, route, key })

const toColumns = (outcome: Outcome) => ({
  clip_id: 'clipId' in outcome ? outcome.clipId : null,
  refusal: 'refusal' in outcome ? jsonb<Refusal | null>(outcome.refusal) : null,
  answer: 'answer' in outcome ? jsonb<object | null>(outcome.answer) : null,
})

export const deleteOutcomesBefore = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'idempotency_keys', { column: 'created_at', before })
