import { type Static, Type } from 'typebox'
import { withAsciiDomain } from '../../../adapters/mail/email-address.ts'
import { FreeForm } from '../../../core/users/metadata.ts'
import { apiError } from '../../../errors.ts'
import { Field } from '../../../http/bodies/shapes.ts'

const confirmation = (value: string) =>
  Type.Boolean({
    description: `true: the ${value} counts as proven, and is taken from an account that never proved it. false: it waits for a proof.`,
  })

export const UserFields = Type.Object({
  role: Type.Optional(Field),
  email: Type.Optional(Field),
  phone: Type.Optional(Type.String({ description: 'E.164, with or without the leading +.' })),
  password: Type.Optional(Field),
  email_confirm: Type.Optional(confirmation('address')),
  phone_confirm: Type.Optional(confirmation('number')),
  user_metadata: Type.Optional(FreeForm),
  app_metadata: Type.Optional(FreeForm),
  ban_duration: Type.Optional(
    Type.String({
      description: 'From now on, up to 292 years: units ns, us, ms, s, m, h, d, w (`7d`, `1h30m`); `none` lifts a ban.',
    }),
  ),
})

/** An admin's changes to a user. "" removes an address, is refused as a password, and elsewhere means unchanged. */
export type UserUpdate = Static<typeof UserFields>

export const NewUserFields = Type.Object(
  {
    id: Type.Optional(Type.String({ description: 'UUID, not the nil UUID; generated when absent.' })),
    aud: Type.Optional(Type.String({ description: 'Default: the header `X-JWT-AUD`, else AUTH_JWT_AUD.' })),
    password_hash: Type.Optional(
      Type.String({
        description:
          'A hash made elsewhere, instead of a password: bcrypt, argon2i or argon2id (PHC), scrypt (PHC) or Firebase scrypt. Replaced by our own at the first sign-in.',
      }),
    ),
    ...UserFields.properties,
  },
  { title: 'NewUser' },
)

/**
 * An admin's description of a new user; "" is the same as absent, except in `password`. `password_hash` is refused
 * beside a password, even ""; without either the user has no password.
 */
export type NewUser = Static<typeof NewUserFields>

/** Bound on roles and audiences, which are in every token. */
const MAX_NAME_BYTES = 255

export function parseName(field: 'role' | 'aud', name: string | undefined): string | undefined {
  if (!name) return undefined
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  throw apiError('validation_failed', { message: `${field} cannot be longer than ${MAX_NAME_BYTES} bytes` })
}

/** The longest e-mail address there is. */
const MAX_FILTER_LENGTH = 255

export function parseFilter(filter: string | undefined): string | undefined {
  if (!filter) return undefined
  if (filter.length <= MAX_FILTER_LENGTH && !filter.includes('\0')) return withAsciiDomain(filter)
  throw apiError('validation_failed', {
    message: `filter must be at most ${MAX_FILTER_LENGTH} characters, without NUL`,
  })
}
