import type { PasswordTry } from '../../core/limits/password-tries.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'

/**
 * Counters of attempts at a second factor: per client address, or per session without a trusted address, and apart for sessions
 * begun by password. A thief with the password can delay only such sessions: the owner signs in by link, code or provider and
 * proves the factor at once. All attempts of either kind together are bounded too.
 */
export const secondFactorTry = (
  what: string,
  { id, amr }: LiveCaller['session'],
  clientAddress: string | undefined,
): PasswordTry => ({
  identifier: `${what} ${beganBy(amr)}`,
  address: clientAddress,
  session: id,
})

const beganBy = (amr: LiveCaller['session']['amr']): string =>
  amr.some(({ method }) => method === 'password') ? 'password' : 'other'
