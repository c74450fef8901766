import type { Metadata } from '../../../db/tables.ts'
import type { UserBody } from '../../users/user-shape.ts'

/** Members of `user_metadata` that the claims of `profile` are read from (claims-of.ts). */
const PROFILE = ['full_name', 'name', 'picture', 'avatar_url', 'preferred_username', 'username']

/** Cuts a user's own answer to the scopes of a client's token; without scopes it is the account's own token. */
export function cutUser(user: UserBody, scopes: readonly string[] | undefined): UserBody {
  if (!scopes || scopes.includes('account:read')) return user
  const { id, aud, role, is_anonymous, created_at, updated_at } = user
  return {
    ...{ id, aud, role, is_anonymous, created_at, updated_at },
    ...(scopes.includes('email') ? { email: user.email, email_confirmed_at: user.email_confirmed_at } : { email: '' }),
    ...(scopes.includes('phone') ? { phone: user.phone, phone_confirmed_at: user.phone_confirmed_at } : { phone: '' }),
    user_metadata: scopes.includes('profile') ? profileIn(user.user_metadata) : {},
    app_metadata: {},
    identities: [],
  }
}

const profileIn = (metadata: Metadata): Metadata =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => PROFILE.includes(name)))
