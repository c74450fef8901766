// Whose an address is. The one rule: an address belongs to an account once its owner has proven it, to us or to a provider that
// verifies addresses. Until then it is in no token, session or answer, and it is no way in. docs/addresses.md draws the states;
// the statements that move an address between them are in addresses.store.ts and unproven-holder.store.ts.
import type { Metadata } from '../../db/tables.ts'
import type { Address } from './address.ts'
import type { IdentityJson, User } from './users.store.ts'

/** Members of `user_metadata` that state facts about the account. Applications trust them, so only the service writes them. */
export const FACTS = ['sub', 'email', 'email_verified', 'phone', 'phone_verified']

export const otherChannel = (channel: Address['channel']): Address['channel'] =>
  channel === 'email' ? 'phone' : 'email'

/** Removes the facts from a caller's metadata. Clients send back what they have read, so no request is refused for them. */
export const withoutFacts = (data: Metadata): Metadata =>
  Object.fromEntries(Object.entries(data).filter(([key]) => !FACTS.includes(key)))

/** What is stored of the data of a sign-up; see new-account.ts. */
export function registeredData(id: string, { channel, value }: Address, data: Metadata): Metadata {
  return { ...withoutFacts(data), sub: id, [channel]: value, email_verified: false, phone_verified: false }
}

/** Reports whether an account waits for its first proof: it has an address, none is confirmed, and it accepts no sign-in. */
export const isPending = (
  user: Pick<User, 'email' | 'phone' | 'email_confirmed_at' | 'phone_confirmed_at' | 'is_anonymous'>,
): boolean =>
  (user.email !== null || user.phone !== null) &&
  !user.is_anonymous &&
  !user.email_confirmed_at &&
  !user.phone_confirmed_at

/**
 * Returns the user as tokens, sessions and the user's own answers show it. Older versions left unconfirmed addresses in rows of
 * accounts in use: they appear as wanted ones.
 */
export function provenUser(user: User): User {
  const email = user.email_confirmed_at ? user.email : null
  const phone = user.phone_confirmed_at ? user.phone : null
  return {
    ...user,
    email,
    phone,
    email_change: user.email_change ?? (email ? null : user.email),
    phone_change: user.phone_change ?? (phone ? null : user.phone),
    user_metadata: factualMetadata(user, { email, phone }),
    identities: user.identities.map((identity) =>
      identity.email === null || isProvenEmail(user, identity.email) ? identity : { ...identity, email: null },
    ),
  }
}

/** Returns the user as admins see it, and as a sign-up is answered: unconfirmed addresses appear, but never as verified. */
export const registeredUser = (user: User): User => ({ ...user, user_metadata: factualMetadata(user, user) })

/** Replaces what `user_metadata` says of addresses by what is true of the account; members that are absent stay absent. */
function factualMetadata(user: User, shown: Pick<User, Address['channel']>): Metadata {
  const metadata: Metadata = { ...user.user_metadata }
  if ('sub' in metadata && !isSubject(user, metadata.sub)) metadata.sub = user.id
  if ('email' in metadata && metadata.email !== shown.email && !isVerifiedElsewhere(user, metadata.email)) {
    setOrDelete(metadata, 'email', shown.email)
  }
  if ('phone' in metadata && metadata.phone !== shown.phone) setOrDelete(metadata, 'phone', shown.phone)
  if ('email_verified' in metadata) {
    metadata.email_verified = isProvenEmail(user, 'email' in metadata ? metadata.email : user.email)
  }
  if ('phone_verified' in metadata) metadata.phone_verified = user.phone !== null && user.phone_confirmed_at !== null
  return metadata
}

function setOrDelete(metadata: Metadata, key: string, value: string | null): void {
  if (value === null) delete metadata[key]
  else metadata[key] = value
}

const isSubject = ({ id, identities }: User, sub: unknown): boolean =>
  sub === id || identities.some((identity) => identity.provider_id === sub)

const isProvenEmail = (user: User, email: unknown): boolean =>
  (user.email !== null && user.email === email && user.email_confirmed_at !== null) || isVerifiedElsewhere(user, email)

/** Reports whether a linked account at a provider has the address, verified there. */
const isVerifiedElsewhere = ({ identities }: User, email: unknown): boolean =>
  identities.some((identity) => isVerified(identity) && identity.email === email && !isOwn(identity))

const isVerified = ({ identity_data }: IdentityJson): boolean => identity_data.email_verified === true

/** The identity behind the user's own address says nothing that the row does not. */
const isOwn = ({ provider }: IdentityJson): boolean => provider === 'email' || provider === 'phone'
