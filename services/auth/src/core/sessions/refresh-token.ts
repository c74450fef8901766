import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

/**
 * An HMAC proves that this service made the token; no part of it is stored. Layout before base64url, always 55
 * characters: version (1 byte) · session id (16) · counter (8, big endian) · HMAC-SHA-256, first 16 bytes.
 */
export interface RefreshToken {
  sessionId: string
  counter: number
}

const VERSION = 1
const HEAD_BYTES = 1 + 16 + 8
const MAC_BYTES = 16
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{55}$/

export function formatRefreshToken(key: KeyObject, { sessionId, counter }: RefreshToken): string {
  const head = Buffer.alloc(HEAD_BYTES)
  head[0] = VERSION
  head.write(sessionId.replaceAll('-', ''), 1, 'hex')
  head.writeBigUInt64BE(BigInt(counter), 17)
  return Buffer.concat([head, macOf(key, head)]).toString('base64url')
}

/** Returns undefined for a token that was not made with this key. */
export function parseRefreshToken(key: KeyObject, text: string): RefreshToken | undefined {
  if (!TOKEN_PATTERN.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== HEAD_BYTES + MAC_BYTES || bytes[0] !== VERSION) return undefined
  // The last character has two bits to spare, which decoders ignore: one token must not have many spellings.
  if (bytes.toString('base64url') !== text) return undefined
  const head = bytes.subarray(0, HEAD_BYTES)
  if (!timingSafeEqual(bytes.subarray(HEAD_BYTES), macOf(key, head))) return undefined
  const id = head.toString('hex', 1, 17)
  const sessionId = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-')
  return { sessionId, counter: Number(head.readBigUInt64BE(17)) }
}

const macOf = (key: KeyObject, head: Buffer) => createHmac('sha256', key).update(head).digest().subarray(0, MAC_BYTES)
