// Repeated requests (Idempotency-Key, contract/media.md 2.10): the outcome of the first one answers them all. The
// transaction that accepts the clip also writes the outcome, and another process waits for that transaction. So nothing
// has to be released when a process dies.
import { ApiError } from '@services/common/errors'
import { type Clip, findClip } from '../../core/clips/clips.store.ts'
import {
  findOutcome,
  forgetOutcome,
  insertOutcome,
  KEY_LIFETIME_MS,
  type KeyedRequest,
  replaceOutcome,
} from '../../core/idempotency/idempotency.store.ts'
import type { Refusal } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import type { AcceptedClip, NewClipInput } from './accept-clip.ts'

/** A request that adds a clip, once its key is known. */
export interface Attempt {
  /** Clip of the first request with this key. */
  known?: Clip
  /** Writes the outcome; the step of the key in the clip's transaction. */
  record?: NewClipInput['alongside']
  /** Ends the acceptance of a clip that is not `known`. A refusal becomes the outcome. */
  settle(accepting: Promise<AcceptedClip>): Promise<AcceptedClip>
  /** The clip is that of an earlier request. */
  isReplay(): boolean
  /**
   * Makes a failure after the acceptance the outcome, unless the key has another clip by then: a slow replay may learn
   * late.
   */
  failAfterwards(clip: Pick<Clip, 'id'>, error: unknown): Promise<never>
}

const WITHOUT_KEY: Attempt = {
  settle: (accepting) => accepting,
  isReplay: () => false,
  failAfterwards: async (_, error) => {
    throw error
  },
}

/**
 * Begins a request: waits for an earlier one of this process with its key, and finds its outcome. Throws its refusal,
 * and idempotency_conflict when it requested something else.
 */
export async function beginRequest(
  deps: Deps,
  keyed: KeyedRequest | undefined,
  clientGone: AbortSignal,
): Promise<Attempt> {
  if (!keyed) return WITHOUT_KEY
  const release = await deps.mutex.take(`${keyed.route} ${keyed.tokenId} ${keyed.key}`)
  let isReplay = false
  const findKnown = async () => {
    const known = await recall(deps, keyed)
    isReplay = known !== undefined
    return known
  }
  const known = await findKnown().catch((error) => {
    release()
    throw error
  })
  if (known) release()

  const toOutcome = async (error: unknown): Promise<Clip> => {
    if (error instanceof AcceptedElsewhere) {
      const clip = await findKnown()
      if (!clip) throw apiError('busy', { retryAfterSeconds: 1 })
      return clip
    }
    const refusal = clientGone.aborted ? undefined : toRefusal(error)
    if (refusal) await insertOutcome(deps.db, keyed, { refusal }, timesOf(deps))
    throw error
  }
  return {
    ...(known && { known }),
    record: async (trx, { id }) => {
      if (!(await insertOutcome(trx, keyed, { clipId: id }, timesOf(deps)))) throw new AcceptedElsewhere()
    },
    settle: (accepting) => accepting.catch(toOutcome).finally(release),
    isReplay: () => isReplay,
    failAfterwards: async ({ id }, error) => {
      const refusal = toRefusal(error)
      await (refusal ? replaceOutcome(deps.db, keyed, id, refusal) : forgetOutcome(deps.db, keyed, id))
      throw error
    },
  }
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

/** Refusals of the token, whose rights and expiry may change. */
const OF_TOKEN = ['token_missing_or_invalid', 'insufficient_scope']

/**
 * Whether a retry would get the refusal again: no limit, no timeout, no token's, no fault of ours or of the upstream.
 */
function isFinal({ code, status, details }: Pick<ApiError, 'code' | 'status' | 'details'>): boolean {
  if (OF_TOKEN.includes(code)) return false
  if (status === 424) return details?.upstream === '4xx' && details.reason !== 'rate_limited'
  return status < 500 && status !== 429 && status !== 408
}

function toRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof ApiError) || !isFinal(error)) return undefined
  const { code, message, details } = error
  return { code: code as ErrorCode, message, ...(details && { details }) }
}
