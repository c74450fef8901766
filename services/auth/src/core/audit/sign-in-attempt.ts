import { ApiError } from '@services/common/errors'
import { counted } from '@services/common/instruments'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { NIL_UUID } from '../../db/uuid.ts'
import { countSignIn } from '../../metrics.ts'
import { type Actor, type AuditDeps, type AuditLog, audit, logAudit } from './audit.ts'

/** Longest address (RFC 5321, section 4.5.3.1.3); what is typed instead may be a megabyte. */
const MAX_TYPED = 254

/** A refused sign-in, as it is counted. */
export interface Refusal {
  method: string
  /** The user whose session or token it came with. */
  userId: string | undefined
  /** Limit key of the client, where refusals of one client are counted apart. */
  client: string | undefined
}

interface AttemptDeps extends AuditDeps {
  db: Kysely<DB>
  limits: { isRefusalStored(refusal: Refusal): Promise<boolean> }
}

/**
 * Too many requests and a busy service are no attempts: recording them would let a flood fill the log. A PKCE code that nothing has
 * is none at anybody's account.
 */
const isAttempt = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 429 && error.code !== 'flow_state_not_found'

export type RefusalLog = AuditLog & { warn(fields: object, message: string): void }

interface Attempt {
  /** How the caller wanted to be let in; the entry's `provider`. */
  method: string
  /** The address that was typed, or that a provider has shown; it names no account. */
  typed: string
}

/** Counts a sign-in by how it ended, and records one that was refused. The refusal is thrown on. */
export async function recordSignIn<Result>(
  deps: AttemptDeps,
  log: RefusalLog,
  attempt: Attempt,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await counted((result) => countSignIn(attempt.method, result), work)
  } catch (error) {
    await recordRefusal(deps, log, { method: attempt.method, actor: unknownActor(attempt.typed) }, error)
    throw error
  }
}

/** Actor of an attempt whose account is not known: known and unknown addresses leave the same entry. */
export const unknownActor = (typed: string): Actor => ({
  id: NIL_UUID,
  email: typed.slice(0, MAX_TYPED),
  phone: null,
  user_metadata: {},
})

interface RefusedAttempt {
  method: string
  actor: Actor
  client?: Refusal['client']
}

/**
 * Records that a caller was not let in, where `error` says so; without an entry the refusal stands all the same. Past so many an
 * hour the log alone has them: strangers make as many as they like, but use up none of what known users have.
 */
export async function recordRefusal(
  deps: AttemptDeps,
  log: RefusalLog,
  { method, actor, client }: RefusedAttempt,
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
    log.warn({ err }, 'a refused sign-in could not be recorded')
  }
}
