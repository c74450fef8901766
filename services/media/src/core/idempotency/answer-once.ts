import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { findAnswer, insertOutcome, KEY_LIFETIME_MS, type KeyedRequest, setAnswer } from './idempotency.store.ts'

/**
 * Acts once for a key, in a transaction that ends with the act; a repeat waits for it and gets its answer. Without a
 * key it always acts. Throws idempotency_conflict for a key of another request.
 */
export async function answerOnce<Answer extends object>(
  trx: Transaction<DB>,
  keyed: KeyedRequest | undefined,
  now: Date,
  act: () => Promise<Answer>,
): Promise<{ answer: Answer; isReplay: boolean }> {
  if (!keyed) return { answer: await act(), isReplay: false }
  const since = new Date(now.getTime() - KEY_LIFETIME_MS)
  if (await insertOutcome(trx, keyed, { answer: {} }, { now, since })) {
    const answer = await act()
    await setAnswer(trx, keyed, answer)
    return { answer, isReplay: false }
  }
  const known = await findAnswer(trx, keyed)
  if (!known?.fingerprint.equals(keyed.fingerprint)) throw apiError('idempotency_conflict')
  return { answer: known.answer as Answer, isReplay: true }
}
