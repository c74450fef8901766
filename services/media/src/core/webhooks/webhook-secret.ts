import { createSecretKey, hkdfSync } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'

const SEALED = 'sealed:'

/** Signing needs the secret, not a hash: it is stored sealed under ENCRYPTION_KEY, or in plain text without one. */
export const sealSecret = (encryptionKey: string | undefined, secret: string): string =>
  encryptionKey === undefined ? secret : SEALED + seal(keyOf(encryptionKey), secret)

/** Throws when the secret was sealed under another key. */
export function unsealSecret(encryptionKey: string | undefined, stored: string): string {
  if (!stored.startsWith(SEALED)) return stored
  if (encryptionKey === undefined) throw new Error('webhook secret is sealed, but ENCRYPTION_KEY is not set')
  return unseal(keyOf(encryptionKey), stored.slice(SEALED.length))
}

const keyOf = (encryptionKey: string) =>
  createSecretKey(Buffer.from(hkdfSync('sha256', encryptionKey, '', 'media webhooks', 32)))
