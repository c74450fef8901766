import { type Static, Type } from 'typebox'
import { FreeForm } from '../../core/users/metadata.ts'

const Field = Type.String()

export const UserFields = Type.Object({
  role: Type.Optional(Field),
  email: Type.Optional(Field),
  phone: Type.Optional(Type.String({ description: 'E.164, with or without the leading +.' })),
  password: Type.Optional(Field),
  email_confirm: Type.Optional(
    Type.Boolean({
      description: 'true: the address counts as proven, and is taken from an account that never proved it.',
    }),
  ),
  phone_confirm: Type.Optional(
    Type.Boolean({
      description: 'true: the number counts as proven, and is taken from an account that never proved it.',
    }),
  ),
  user_metadata: Type.Optional(FreeForm),
  app_metadata: Type.Optional(FreeForm),
  ban_duration: Type.Optional(
    Type.String({ description: 'From now on: units ns, us, ms, s, m, h (`24h`, `1h30m`); `none` lifts a ban.' }),
  ),
})

/** An admin's changes to a user; absent or "" means unchanged, but "" as a password is refused as weak. */
export type UserUpdate = Partial<ReturnType<typeof readUserFields>>

export const readUserFields = (body: Static<typeof UserFields>) => ({
  role: body.role,
  email: body.email,
  phone: body.phone,
  password: body.password,
  emailConfirm: body.email_confirm,
  phoneConfirm: body.phone_confirm,
  userMetadata: body.user_metadata,
  appMetadata: body.app_metadata,
  banDuration: body.ban_duration,
})
