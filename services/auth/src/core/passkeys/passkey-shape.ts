import { type Static, Type } from 'typebox'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import type { Passkey } from './passkeys.store.ts'

const Timestamp = Type.String({ format: 'date-time' })

/** A passkey as its user and admins see it. */
export const PasskeyShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    friendly_name: Type.String({ description: 'Name of the provider at first, such as `iCloud Keychain`.' }),
    created_at: Timestamp,
    last_used_at: Type.Optional(Timestamp),
  },
  { title: 'Passkey' },
)

export type PasskeyBody = Static<typeof PasskeyShape>

export const toPasskeyBody = ({ id, friendly_name, created_at, last_used_at }: Passkey): PasskeyBody => ({
  id,
  friendly_name,
  created_at: created_at.toISOString(),
  ...(last_used_at && { last_used_at: last_used_at.toISOString() }),
})

/** Finds the passkey of a path among a user's. Throws validation_failed (404), for malformed ids too. */
export function requirePasskey(passkeys: readonly Passkey[], id: string): Passkey {
  const found = UUID.test(id) ? passkeys.find((passkey) => passkey.id === id.toLowerCase()) : undefined
  if (!found) throw passkeyNotFound()
  return found
}

export const passkeyNotFound = () => apiError('validation_failed', { status: 404, message: 'Passkey not found' })
