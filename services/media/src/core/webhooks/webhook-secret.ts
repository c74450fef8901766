import { createSecretKey, hkdfSync, randomBytes } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'

/** Standard Webhooks: the prefix and base64 of 24 to 64 bytes. */
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/
const [SHORTEST_BYTES, LONGEST_BYTES] = [24, 64]

export const makeSecret = (): string => `whsec_${randomBytes(SHORTEST_BYTES).toString('base64')}`

export function isSecret(text: string): boolean {
  const [, encoded = ''] = SECRET.exec(text) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.length >= SHORTEST_BYTES && bytes.length <= LONGEST_BYTES && bytes.toString('base64') === encoded
}

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
