import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const TAG_BYTES = 16

/**
 * Encrypts a secret for the database by AES-256-GCM. Layout before base64: nonce (12 bytes) · tag (16) · ciphertext.
 * The text opens only with the same `context` (additional data), so it is worth nothing in another place.
 */
export function seal(key: KeyObject, value: unknown, context = ''): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')
}

/** Decrypts; throws when key or context differ or the value was changed. */
export function unseal<Value>(key: KeyObject, sealed: string, context = ''): Value {
  const bytes = Buffer.from(sealed, 'base64')
  // Refuses a truncated tag: four bytes could be guessed.
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(12, 12 + TAG_BYTES))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(12 + TAG_BYTES)), decipher.final()]).toString('utf8'))
}
