import type { Config } from '../../../config.ts'
import type { Aal, AmrEntry, OAuthAuthorization } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import { TRUSTED_DEVICE } from '../../amr/second-methods.ts'
import { lacksFactor } from '../../factors/assurance.ts'
import { isSecondFactorDemanded } from '../../freshness/require-fresh.ts'
import type { User } from '../../users/users.store.ts'

type Demands = Pick<OAuthAuthorization, 'prompt' | 'max_age' | 'acr_values' | 'created_at'>

export interface ProvenSession {
  aal: Aal
  amr: readonly AmrEntry[]
}

/** Values of `acr`, from the lowest. */
export const LEVELS: readonly Aal[] = ['aal1', 'aal2', 'aal3']

export const asksFor = ({ prompt }: Pick<Demands, 'prompt'>, what: string): boolean =>
  prompt?.split(' ').includes(what) ?? false

/** Returns the time of the newest proof: a trusted device proves nothing anew, and anonymous users have none. */
export function provenAt({ amr }: Pick<ProvenSession, 'amr'>): Date {
  const proofs = amr.filter(({ method }) => method !== TRUSTED_DEVICE && method !== 'anonymous')
  return new Date(Math.max(0, ...proofs.map(({ timestamp }) => timestamp)) * 1000)
}

/** Throws insufficient_aal for a session without the second factor that its user has, or that is demanded. */
export function requireOwnFactor(
  { config }: { config: Pick<Config, 'jwt' | 'mfa'> },
  user: Pick<User, 'app_metadata' | 'factors' | 'is_anonymous' | 'role'>,
  { aal }: Pick<ProvenSession, 'aal'>,
): void {
  const isLow = aal === 'aal1' && isSecondFactorDemanded(config, user)
  if (isLow || lacksFactor(user, aal)) throw apiError('insufficient_aal')
}

/**
 * Throws unless the session is what the request asks for: insufficient_aal (acr_values), reauthentication_needed
 * (prompt=login, max_age). A proof that is newer than the request satisfies every age.
 */
export function requireDemandedProof(request: Demands, session: ProvenSession, now: Date): void {
  const levels = (request.acr_values ?? '').split(' ').map((value) => LEVELS.indexOf(value as Aal))
  const lowest = Math.min(...levels.filter((level) => level >= 0))
  if (Number.isFinite(lowest) && LEVELS.indexOf(session.aal) < lowest) throw apiError('insufficient_aal')
  const proven = provenAt(session)
  if (proven > request.created_at) return
  // Times of proofs are whole seconds, as `auth_time` is.
  const ageSeconds = Math.floor((now.getTime() - proven.getTime()) / 1000)
  const isOld = request.max_age !== null && ageSeconds > request.max_age
  if (!isOld && !asksFor(request, 'login')) return
  throw apiError('reauthentication_needed', { status: 403, message: 'This request requires a new sign-in' })
}
