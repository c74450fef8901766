import type { User } from './users.store.ts'

/** Makes a user without addresses or data, which flows fill in. */
export function blankUser(id: string, aud: string, role: string, now: Date): User {
  return {
    id,
    aud,
    role,
    email: null,
    phone: null,
    email_confirmed_at: null,
    phone_confirmed_at: null,
    confirmed_at: null,
    invited_at: null,
    confirmation_sent_at: null,
    recovery_sent_at: null,
    email_change: null,
    email_change_sent_at: null,
    phone_change: null,
    phone_change_sent_at: null,
    reauthentication_sent_at: null,
    last_sign_in_at: null,
    app_metadata: {},
    user_metadata: {},
    is_anonymous: false,
    banned_until: null,
    deleted_at: null,
    created_at: now,
    updated_at: now,
    identities: [],
    factors: null,
  }
}
