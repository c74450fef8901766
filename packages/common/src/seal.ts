import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const TAG_BYTES = 16

/** Encrypts a secret for the database by AES-256-GCM. Layout before base64: nonce (12 bytes) · tag (16) · ciphertext. */
export function seal(key: KeyObject, value: unknown): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')
}

/** Decrypts; throws when the key differs or the value was changed. */
export function unseal<Value>(key: KeyObject, sealed: string): Value {
  const bytes = Buffer.from(sealed, 'base64')
  // Refuses a truncated tag: four bytes could be guessed.
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(12, 12 + TAG_BYTES))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(12 + TAG_BYTES)), decipher.final()]).toString('utf8'))
}
