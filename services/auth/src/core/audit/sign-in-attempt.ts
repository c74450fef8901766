import { ApiError } from '@services/common/errors'
import { counted } from '@services/common/telemetry/instruments'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import { countSignIn, noteRefusal } from '../../metrics.ts'
import { type Actor, type AuditDeps, type AuditLog, audit, logAudit } from './audit.ts'

/** Longest address (RFC 5321, section 4.5.3.1.3); typed text may be a megabyte. */
const MAX_TYPED = 254

/** Counters of a refused sign-in. */
export interface Refusal {
  method: string
  /** Owner of the session or token in the request. */
  userId: string | undefined
  /** Limit key of the client, where refusals are counted by client. */
  client: string | undefined
}

interface AttemptDeps extends AuditDeps {
  db: Kysely<DB>
  limits: { isRefusalStored(refusal: Refusal): Promise<boolean> }
}

/** Excludes 429 and 5xx, with which a flood would fill the log, and unknown PKCE codes, which concern no account. */
const isAttempt = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 429 && error.code !== 'flow_state_not_found'

export type RefusalLog = AuditLog & { warn(fields: object, message: string): void }

interface Attempt {
  /** Way of signing in; the entry's `provider`. */
  method: string
  /** Address that was typed or reported by a provider; it names no account. */
  typed: string
}

/** Counts a sign-in by its result, and records and rethrows a refusal. */
export async function recordSignIn<Result>(
  deps: AttemptDeps,
  log: RefusalLog,
  attempt: Attempt,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await counted((result) => countSignIn(attempt.method, result), work)
  } catch (error) {
    await storeRefusal(deps, log, { method: attempt.method, actor: unknownActor(attempt.typed) }, error)
    throw error
  }
}

/** Actor of an attempt at an unknown account: known and unknown addresses leave the same entry. */
export const unknownActor = (typed: string): Actor => ({
  id: NIL_UUID,
  email: typed.slice(0, MAX_TYPED),
  phone: null,
  user_metadata: {},
})

interface Refused {
  method: string
  actor: Actor
  client?: Refusal['client']
}

/** Records a refusal beside those of sign-ins: of a second factor or of an admin's token. */
export async function recordRefusal(
  deps: AttemptDeps,
  log: RefusalLog,
  refused: Refused,
  error: unknown,
): Promise<void> {
  if (error instanceof ApiError) noteRefusal(refused.method, error.code)
  await storeRefusal(deps, log, refused, error)
}

/**
 * Records `error` if it refuses a sign-in; a failure to record it is only logged. Past an hourly limit only the log has
 * refusals. Known users have a limit of their own, which a flood by strangers does not use up.
 */
async function storeRefusal(
  deps: AttemptDeps,
  log: RefusalLog,
  { method, actor, client }: Refused,
  error: unknown,
): Promise<void> {
  if (!isAttempt(error)) return
  const traits = { provider: method, error_code: error.code }
  const event = { action: 'login_failed', actor, traits } as const
  const userId = actor.id === NIL_UUID ? undefined : actor.id
  const isStored = () => deps.limits.isRefusalStored({ method, userId, client })
  try {
    if (deps.config.auditInDatabase && (await isStored())) await audit(deps, deps.db, log, event)
    else logAudit(log, event)
  } catch (err) {
    log.warn({ err }, 'refused sign-in not recorded')
  }
}
