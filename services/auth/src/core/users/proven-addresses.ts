// Users and their addresses. An address belongs to an account once its owner has proven it, to us or to a provider.
// Until then it is in no token or answer and no way in. Steps between states: docs/addresses.md; statements:
// addresses.store.ts, registrants.store.ts. Tests: ../../../test/addresses.test.ts.
//
// Word       | meaning
// owner      | person who reads the messages to an address, and so can prove it
// registered | stored as an account's `email` or `phone`, proven or not
// requested  | stored as `email_change` or `phone_change`: the user wants it
// confirmed  | has a time of confirmation, so it is proven or assumed
// proven     | its owner opened a link, entered a code, or came by a provider that verifies addresses
// assumed    | confirmed by a setting (autoconfirm) alone: `email_assumed`, `phone_assumed`
// vouched    | given by an admin: `email_vouched`, `phone_vouched`; no other user displaces it
// registrant | account, and its user, with an address neither proven nor vouched: perhaps a stranger to its owner
// pending    | account that has addresses but none confirmed, and so accepts no sign-in
// claim      | password and metadata of a request for an address that is not proven yet: address-claims.ts
import type { Metadata } from '../../db/tables.ts'
import type { Address } from './address.ts'
import type { User, UserJson } from './users.store.ts'

/** Members of `user_metadata` that only the service writes, because applications trust them. */
export const FACTS = ['sub', 'email', 'email_verified', 'phone', 'phone_verified']

export const otherChannel = (channel: Address['channel']): Address['channel'] =>
  channel === 'email' ? 'phone' : 'email'

/** Removes the facts from a caller's metadata. Clients send them back as read, so no request is refused for them. */
export const withoutFacts = (data: Metadata): Metadata =>
  Object.fromEntries(Object.entries(data).filter(([key]) => !FACTS.includes(key)))

/** Returns the stored metadata of a sign-up; see ../identities/new-account.ts. */
export function registeredData(id: string, { channel, value }: Address, data: Metadata): Metadata {
  return { ...withoutFacts(data), sub: id, [channel]: value, email_verified: false, phone_verified: false }
}

/** Reports whether an account awaits its first proof: it has an address but none confirmed, and accepts no sign-in. */
export const isPending = (
  user: Pick<User, 'email' | 'phone' | 'email_confirmed_at' | 'phone_confirmed_at' | 'is_anonymous'>,
): boolean =>
  (user.email !== null || user.phone !== null) &&
  !user.is_anonymous &&
  !user.email_confirmed_at &&
  !user.phone_confirmed_at

/**
 * Returns the user for tokens and own answers. An unconfirmed address, which an admin or an import may have given an
 * account in use, shows as a requested change.
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

/** Returns the user as in answers to admins and to a sign-up: unconfirmed addresses appear, but never as verified. */
export const registeredUser = <Shown extends User | UserJson>(user: Shown): Shown => ({
  ...user,
  user_metadata: factualMetadata(user, user),
})

/** Corrects the facts in `user_metadata`; absent members stay absent. */
function factualMetadata(user: User | UserJson, shown: Pick<User, Address['channel']>): Metadata {
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

const isSubject = ({ id, identities }: Pick<User, 'id' | 'identities'>, sub: unknown): boolean =>
  sub === id || identities.some((identity) => identity.provider_id === sub)

const isProvenEmail = (user: User | UserJson, email: unknown): boolean =>
  (user.email !== null && user.email === email && user.email_confirmed_at !== null) || isVerifiedElsewhere(user, email)

/** Reports whether a provider verified the address. Identities of own addresses prove no more than the user's row. */
const isVerifiedElsewhere = ({ identities }: Pick<User, 'identities'>, address: unknown): boolean =>
  identities.some(
    ({ provider, email, identity_data }) =>
      email === address && identity_data.email_verified === true && provider !== 'email' && provider !== 'phone',
  )
