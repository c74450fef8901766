// Requests that are sent again (Idempotency-Key, contract/media.md 2.10): what the first one came to is the answer to all.
// The one rule: the outcome is written in the transaction that accepts the clip, so that both are there or neither, and of
// two processes one waits for the other's transaction. Nothing has to be given back when a process dies.
import { ApiError } from '@services/common/errors'
import { type Clip, findClip } from '../../core/clips/clips.store.ts'
import type { Refusal } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode, errorCatalogue } from '../../errors.ts'
import type { AcceptedClip, NewClipInput } from './accept-clip.ts'
import { findOutcome, forgetOutcome, insertOutcome, type KeyedRequest, replaceOutcome } from './idempotency.store.ts'

const REMEMBERED_MS = 86_400_000

type Accept = (alongside?: NewClipInput['alongside']) => Promise<AcceptedClip>

/**
 * Accepts a clip, or finds the one that the first request of this key led to. Throws what that one was refused with, and
 * idempotency_conflict when it asked for something else. In one process the second waits until the first is decided.
 */
export async function acceptOnce(
  deps: Deps,
  keyed: KeyedRequest | undefined,
  accept: Accept,
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
      if (error instanceof AcceptedElsewhere) return { clip: await recallOther(deps, keyed), isReplay: true }
      const refusal = clientGone.aborted ? undefined : toRefusal(error)
      if (refusal) await insertOutcome(deps.db, keyed, { refusal }, timesOf(deps))
      throw error
    }
  })
}

/**
 * Rethrows the failure of an accepted clip, and makes it the outcome of its key. A replay that waited long may fail after its
 * key has led to another clip: that clip's outcome is left alone.
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

/** The transaction of another process was first; it is over, or this one would not know. */
class AcceptedElsewhere extends Error {}

async function recallOther(deps: Deps, keyed: KeyedRequest): Promise<Clip> {
  const clip = await recall(deps, keyed)
  if (!clip) throw apiError('busy', { retryAfterSeconds: 1 })
  return clip
}

/** Undefined when there is nothing to repeat, or only a failure of ours. */
async function recall(deps: Deps, keyed: KeyedRequest): Promise<Clip | undefined> {
  const known = await findOutcome(deps.db, keyed, timesOf(deps).since)
  if (!known) return undefined
  if (!known.fingerprint.equals(keyed.fingerprint)) throw apiError('idempotency_conflict')
  if ('refusal' in known.outcome) throw apiError(known.outcome.refusal.code, known.outcome.refusal)
  const clip = await findClip(deps.db, known.outcome.clipId)
  if (clip?.state === 'deleted') throw apiError('gone')
  if (clip && clip.state !== 'failed') return clip
  const code = clip?.errorCode ?? 'internal'
  if (isFinal(errorCatalogue[code].status)) throw apiError(code)
  await forgetOutcome(deps.db, keyed, known.outcome.clipId)
  return undefined
}

function timesOf({ now }: Pick<Deps, 'now'>) {
  const moment = now()
  return { now: moment, since: new Date(moment.getTime() - REMEMBERED_MS) }
}

/** What would be the same another time: no limit, no slowness and no fault of ours. */
const isFinal = (status: number) => status < 500 && status !== 429 && status !== 408

function toRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof ApiError) || !isFinal(error.status)) return undefined
  const { code, message, details } = error
  return { code: code as ErrorCode, message, ...(details && { details }) }
}
