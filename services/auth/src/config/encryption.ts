import { parsed, type Values, type Variables } from '@services/common/config/variables'
import { type EncryptionSettings, parseEncryptionKeys, withUnnamed } from '../core/keys/encryption-keys.ts'
import { type jwtVariables, parseSecret } from './jwt.ts'

export const encryptionVariables = {
  ENCRYPTION_KEYS: parsed(
    'id:key, id:key',
    'Keys that encrypt second factors, queued messages, tokens and client secrets of providers in the database: the first encrypts, all decrypt. `keys generate --encryption` makes one; docs/rotate-keys.md replaces one. ENCRYPTION_KEY as an entry stands for the key without id.',
    { secret: true },
    parseEncryptionKeys,
  ),
  ENCRYPTION_KEY: parsed(
    'string',
    'Key without id, at least 16 bytes: encrypts while ENCRYPTION_KEYS is unset, and decrypts what it encrypted. Unset: JWT_SECRET, whose change then loses second factors.',
    { secret: true },
    parseSecret,
  ),
} satisfies Variables

export function encryptionSettings(
  values: Values<typeof encryptionVariables & Pick<typeof jwtVariables, 'JWT_SECRET'>>,
): EncryptionSettings {
  return { keys: withUnnamed(values.ENCRYPTION_KEYS ?? [], values.ENCRYPTION_KEY ?? values.JWT_SECRET) }
}
