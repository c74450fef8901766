import type { PasswordAttempt } from '../../core/limits/password-attempts.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'

/**
 * What attempts at a second factor count against: sessions begun by the password apart from all others, and in either kind the
 * client address, or without a trusted one the session. A caller who knows only the password can keep only sessions of that
 * kind waiting: the owner signs in by a link, a code or a provider and proves the factor at once. In each kind all attempts
 * together stay bounded, from however many addresses and sessions.
 */
export const secondFactorTry = (
  what: string,
  { id, amr }: LiveCaller['session'],
  clientAddress: string | undefined,
): PasswordAttempt => ({
  identifier: `${what} ${beganBy(amr)}`,
  address: clientAddress,
  session: id,
})

const beganBy = (amr: LiveCaller['session']['amr']): string =>
  amr.some(({ method }) => method === 'password') ? 'password' : 'other'
