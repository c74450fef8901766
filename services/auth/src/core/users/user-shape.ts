import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { FactorJson } from '../../db/tables.ts'
import { isoTime } from './iso-time.ts'
import { FreeForm } from './metadata.ts'
import { provenUser, registeredUser } from './proven-addresses.ts'
import type { IdentityJson, User, UserJson } from './users.store.ts'

const Timestamp = Type.String({ format: 'date-time' })

export const IdentityShape = Type.Object(
  {
    identity_id: Type.String({ format: 'uuid' }),
    id: Type.String({ description: 'Account id at the provider.' }),
    user_id: Type.String({ format: 'uuid' }),
    identity_data: Type.Optional(FreeForm),
    provider: Type.String(),
    last_sign_in_at: Type.Optional(Timestamp),
    created_at: Timestamp,
    updated_at: Timestamp,
    email: Type.Optional(Type.String()),
  },
  { title: 'Identity' },
)

/** A second factor as the user and admins see it, without secrets. */
export const FactorShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    status: Type.String({
      description: '`verified` after the first proof.',
      ...inDocument({ enum: ['unverified', 'verified'] }),
    }),
    friendly_name: Type.Optional(Type.String()),
    factor_type: Type.String(inDocument({ enum: ['totp', 'phone', 'webauthn', 'recovery_code'] })),
    phone: Type.Optional(Type.String({ description: 'E.164 number with the leading +.' })),
    last_challenged_at: Type.Optional(Timestamp),
    web_authn_aaguid: Type.Optional(Type.String({ description: 'Model of a security key.' })),
  },
  { title: 'Factor' },
)

/** The user as every endpoint answers it: unset times are absent, never null; a missing address is "". */
export const UserShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    aud: Type.String(),
    role: Type.String(),
    email: Type.String({
      description: 'Confirmed address or `""`. Answers to admins and to a sign-up include an unconfirmed one.',
    }),
    email_confirmed_at: Type.Optional(Timestamp),
    invited_at: Type.Optional(Timestamp),
    phone: Type.String({ description: 'Digits without the leading +; same rules as `email`.' }),
    phone_confirmed_at: Type.Optional(Timestamp),
    confirmation_sent_at: Type.Optional(Timestamp),
    confirmed_at: Type.Optional(Timestamp),
    recovery_sent_at: Type.Optional(Timestamp),
    new_email: Type.Optional(
      Type.String({
        description: 'Address that is not confirmed yet; absent once the session that requested it has ended.',
      }),
    ),
    email_change_sent_at: Type.Optional(Timestamp),
    new_phone: Type.Optional(Type.String()),
    phone_change_sent_at: Type.Optional(Timestamp),
    reauthentication_sent_at: Type.Optional(Timestamp),
    last_sign_in_at: Type.Optional(Timestamp),
    app_metadata: FreeForm,
    user_metadata: FreeForm,
    identities: Type.Array(IdentityShape),
    factors: Type.Optional(Type.Array(FactorShape, { description: 'Second factors; absent when there are none.' })),
    created_at: Timestamp,
    updated_at: Timestamp,
    banned_until: Type.Optional(Timestamp),
    deleted_at: Type.Optional(Timestamp),
    is_anonymous: Type.Boolean(),
    has_password: Type.Optional(
      Type.Boolean({
        description:
          'Whether a password is set, once an address is confirmed. Conflicting requests drop that of a sign-up.',
      }),
    ),
  },
  { title: 'User' },
)

export type UserBody = Type.Static<typeof UserShape>

declare const isChecked: unique symbol

/** A user whose pending changes can still be confirmed; made by ../sessions/user-answers.ts alone. */
export type ShownUser<Read extends User | UserJson = User> = Read & { [isChecked]: true }

/** Returns the user's own answer, which applications trust: only proven addresses. */
export const toUserBody = (user: ShownUser): UserBody => bodyOf(provenUser(user))

/** Returns the answer to admins and to a sign-up, with unproven addresses. */
export const toRegisteredBody = (user: ShownUser<User | UserJson>): UserBody => bodyOf(registeredUser(user))

function bodyOf(user: User | UserJson): UserBody {
  return {
    id: user.id,
    aud: user.aud,
    role: user.role,
    email: user.email ?? '',
    email_confirmed_at: time(user.email_confirmed_at),
    invited_at: time(user.invited_at),
    phone: user.phone ?? '',
    phone_confirmed_at: time(user.phone_confirmed_at),
    confirmation_sent_at: time(user.confirmation_sent_at),
    confirmed_at: time(user.confirmed_at),
    recovery_sent_at: time(user.recovery_sent_at),
    new_email: user.email_change ?? undefined,
    email_change_sent_at: time(user.email_change_sent_at),
    new_phone: user.phone_change ?? undefined,
    phone_change_sent_at: time(user.phone_change_sent_at),
    reauthentication_sent_at: time(user.reauthentication_sent_at),
    last_sign_in_at: time(user.last_sign_in_at),
    app_metadata: user.app_metadata,
    user_metadata: user.user_metadata,
    identities: user.identities.map(toIdentityBody),
    factors: user.factors?.map(toFactorBody),
    created_at: isoTime(user.created_at),
    updated_at: isoTime(user.updated_at),
    banned_until: time(user.banned_until),
    deleted_at: time(user.deleted_at),
    is_anonymous: user.is_anonymous,
    has_password: user.confirmed_at ? user.has_password : undefined,
  }
}

function toIdentityBody(identity: IdentityJson): Type.Static<typeof IdentityShape> {
  return {
    identity_id: identity.id,
    id: identity.provider_id,
    user_id: identity.user_id,
    identity_data: identity.identity_data,
    provider: identity.provider,
    last_sign_in_at: time(identity.last_sign_in_at),
    created_at: isoTime(identity.created_at),
    updated_at: isoTime(identity.updated_at),
    email: identity.email ?? undefined,
  }
}

export type FactorBody = Type.Static<typeof FactorShape>

export const toFactorBody = (factor: FactorJson): FactorBody => ({
  id: factor.id,
  created_at: isoTime(factor.created_at),
  updated_at: isoTime(factor.updated_at),
  status: factor.status,
  friendly_name: factor.friendly_name || undefined,
  factor_type: factor.factor_type,
  phone: factor.phone === null ? undefined : `+${factor.phone}`,
  last_challenged_at: time(factor.last_challenged_at),
  web_authn_aaguid: factor.aaguid ?? undefined,
})

const time = (value: Date | string | null) => (value === null ? undefined : isoTime(value))
