import { provenUser } from '../../core/users/proven-addresses.ts'
import type { Deps } from '../../deps.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { typedAddress } from './address.ts'

/** Time between two presses, with the answers to both. */
const MOMENT_SECONDS = 60

/** Unix seconds after which a proof may be that of the first press of two. */
export const momentsAgo = ({ now }: Pick<Deps, 'now'>): number => now().getTime() / 1000 - MOMENT_SECONDS

/**
 * Whether this browser has signed in with an address within the last moments, such as by the first press of two. The
 * second one is refused, because it finds a used code or an account that exists.
 */
export async function hasJustSignedIn(visit: Visit, typed: string | undefined): Promise<boolean> {
  const address = typedAddress(visit, typed)
  const caller = address && (await visit.caller())
  if (!caller) return false
  const { email, phone } = provenUser(caller.user)
  const isOwn =
    'email' in address ? address.email.toLowerCase() === email : address.phone.replaceAll(/\D/g, '') === phone
  return isOwn && caller.session.amr.some(({ timestamp }) => timestamp >= momentsAgo(visit.deps))
}
