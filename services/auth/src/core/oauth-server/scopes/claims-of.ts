// Claims about a user by scope, for access tokens, id_tokens and userinfo. The rule: a claim without its scope appears
// nowhere, not even inside another one. The table is in docs/contract/auth-oauth-server.md.
import type { Metadata } from '../../../db/tables.ts'
import { provenUser } from '../../users/proven-addresses.ts'
import type { User } from '../../users/users.store.ts'
import type { OAuthScope } from '../oauth-scopes.ts'

export type Claims = Record<string, unknown>

/**
 * Returns the claims that the scopes open, without `sub`. Scopes of operators add members of the metadata in their
 * place, as in the tokens of sessions. So none of them can pose as another claim.
 */
export function claimsOf(
  user: User,
  scopes: readonly string[],
  ownScopes: readonly Pick<OAuthScope, 'name' | 'claims'>[],
): Claims {
  const proven = provenUser(user)
  const claims: Claims = {}
  for (const scope of scopes)
    if (Object.hasOwn(BY_SCOPE, scope)) Object.assign(claims, BY_SCOPE[scope]?.(proven, scopes))
  for (const { name, claims: paths } of ownScopes) {
    if (scopes.includes(name)) for (const path of paths) copyMember(proven, claims, path.split('.'))
  }
  return claims
}

const BY_SCOPE: Record<string, (user: User, scopes: readonly string[]) => Claims> = {
  email: ({ email, email_assumed }) => (email === null ? {} : { email, email_verified: !email_assumed }),
  phone: ({ phone, phone_assumed }) =>
    phone === null ? {} : { phone_number: `+${phone}`, phone_number_verified: !phone_assumed },
  profile: ({ user_metadata: metadata, email, updated_at }, scopes) => ({
    ...textIn('name', metadata.full_name, metadata.name, scopes.includes('email') ? email : undefined),
    ...textIn('picture', metadata.picture, metadata.avatar_url),
    ...textIn('preferred_username', metadata.preferred_username, metadata.username),
    updated_at: Math.floor(updated_at.getTime() / 1000),
  }),
  'account:read': ({ user_metadata }) => ({ user_metadata: { ...user_metadata } }),
}

/** Picks the first text; users write their metadata, and other members would break the readers of a claim. */
function textIn(claim: string, ...values: unknown[]): Claims {
  const text = values.find((value) => typeof value === 'string' && value !== '')
  return text === undefined ? {} : { [claim]: text }
}

/** Copies one member of the metadata into the same place of the claims; an absent one leaves no trace. */
function copyMember(user: User, claims: Claims, path: readonly string[]): void {
  let value: unknown = user
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return
    value = (value as Metadata)[key]
  }
  let place: Claims = claims
  for (const key of path.slice(0, -1)) {
    // A copy: the values are the user's own. Without a prototype, `__proto__` is a name like any other.
    place[key] = Object.assign(Object.create(null), place[key])
    place = place[key] as Claims
  }
  place[path.at(-1) as string] = value
}
