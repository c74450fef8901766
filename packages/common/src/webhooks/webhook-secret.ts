import { randomBytes } from 'node:crypto'

/** Standard Webhooks: the prefix and base64 of 24 to 64 bytes. */
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/
const [SHORTEST_BYTES, LONGEST_BYTES] = [24, 64]

export const makeSecret = (): string => `whsec_${randomBytes(SHORTEST_BYTES).toString('base64')}`

export function isSecret(text: string): boolean {
  const [, encoded = ''] = SECRET.exec(text) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.length >= SHORTEST_BYTES && bytes.length <= LONGEST_BYTES && bytes.toString('base64') === encoded
}
