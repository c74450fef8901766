import { createHash, randomBytes } from 'node:crypto'

/** Makes a secret, which is shown once, and its hash. A fast hash is enough for 256 random bits. */
export function newClientSecret(): { secret: string; secret_hash: Buffer } {
  const secret = randomBytes(32).toString('base64url')
  return { secret, secret_hash: createHash('sha256').update(secret).digest() }
}
