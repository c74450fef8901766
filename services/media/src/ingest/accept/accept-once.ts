// Repeated requests (Idempotency-Key, contract/media.md 2.10): the outcome of the first one answers them all.
// The one rule: the transaction that accepts the clip also writes the outcome, and another process waits for that
// transaction. So nothing has to be released when a process dies.
import { ApiError } from '@services/common/errors'
import { type Clip, findClip } from '../../core/clips/clips.store.ts'
import type { Refusal } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import type { AcceptedClip, NewClipInput } from './accept-clip.ts'
import {
  findOutcome,
  forgetOutcome,
  insertOutcome,
  KEY_LIFETIME_MS,
  type KeyedRequest,
  replaceOutcome,
} from './idempotency.store.ts'

/**
 * Accepts a clip, or finds the one of the first request with this key. Throws that request's refusal, and
 * idempotency_conflict when it requested something else. Within a process the second request waits for the first.
 */
export async function acceptOnce(
  deps: Deps,
  keyed: KeyedRequest | undefined,
  accept: (alongside?: NewClipInput['alongside']) => Promise<AcceptedClip>,
  clientGone: AbortSignal,
): Promise<{ clip: AcceptedClip; isReplay: boolean }> {
  if (!keyed) return { clip: await accept(), isReplay: false }
  return deps.mutex.run(`${keyed.route} ${keyed.tokenId} ${keyed.key}`, async () => {
    const known = await recall(deps, keyed)
    if (known) return { clip: known, isReplay: true }
    try {
      const clip = await accept(async (trx, { id }) => {
        if (!(await insertOutcome(trx, keyed, { clipId: id }, timesOf(deps)))) throw new AcceptedElsewhere()
      })
      return { clip, isReplay: false }
    } catch (error) {
      if (error instanceof AcceptedElsewhere) {
        const clip = await recall(deps, keyed)
        if (!clip) throw apiError('busy', { retryAfterSeconds: 1 })
        return { clip, isReplay: true }
      }
      const refusal = clientGone.aborted ? undefined : toRefusal(error)
      if (refusal) await insertOutcome(deps.db, keyed, { refusal }, timesOf(deps))
      throw error
    }
  })
}

/**
 * Runs the answer after a clip is accepted; a failure now becomes the outcome. A slow replay may learn of it when its
 * key already has another clip: the outcome of that clip is kept.
 */
export async function failAfterwards(
  { db }: Pick<Deps, 'db'>,
  keyed: KeyedRequest | undefined,
  { id }: Pick<Clip, 'id'>,
  error: unknown,
): Promise<never> {
  if (keyed) {
    const refusal = toRefusal(error)
    await (refusal ? replaceOutcome(db, keyed, id, refusal) : forgetOutcome(db, keyed, id))
  }
  throw error
}

/** The transaction of another process won, and has ended: otherwise this one would still wait for it. */
class AcceptedElsewhere extends Error {}

/** Returns undefined when there is no outcome yet, or only a failure of ours. */
async function recall(deps: Deps, keyed: KeyedRequest): Promise<Clip | undefined> {
  const known = await findOutcome(deps.db, keyed, timesOf(deps).since)
  if (!known) return undefined
  if (!known.fingerprint.equals(keyed.fingerprint)) throw apiError('idempotency_conflict')
  if ('refusal' in known.outcome) throw apiError(known.outcome.refusal.code, known.outcome.refusal)
  const clip = await findClip(deps.db, known.outcome.clipId, deps.now())
  if (clip?.state === 'deleted') throw apiError('gone')
  if (clip && clip.state !== 'failed') return clip
  const failure = apiError(clip?.errorCode ?? 'internal')
  if (isFinal(failure)) throw failure
  await forgetOutcome(deps.db, keyed, known.outcome.clipId)
  return undefined
}

function timesOf({ now }: Pick<Deps, 'now'>) {
  const moment = now()
  return { now: moment, since: new Date(moment.getTime() - KEY_LIFETIME_MS) }
}

/** Whether a retry would get the refusal again: no limit, no timeout, no fault of ours or of the upstream. */
function isFinal({ status, details }: Pick<ApiError, 'status' | 'details'>): boolean {
  if (status === 424) return details?.upstream === '4xx' && details.reason !== 'rate_limited'
  return status < 500 && status !== 429 && status !== 408
}

function toRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof ApiError) || !isFinal(error)) return undefined
  const { code, message, details } = error
  return { code: code as ErrorCode, message, ...(details && { details }) }
}
