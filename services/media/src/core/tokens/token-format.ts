// The text of an API token, shown once and stored as a hash. Scopes: scopes.ts; limits: allowance.ts; rows:
// tokens.store.ts. Tests: test/tokens.test.ts.
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'mh_'
const RANDOM_LENGTH = 22
const CHECKSUM_LENGTH = 6

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns an integer below `max`; uniform. */
export type RandomInt = (max: number) => number

export function randomBase62(length: number, random: RandomInt): string {
  return Array.from({ length }, () => BASE62[random(BASE62.length)]).join('')
}

/** 131 random bits; prefix and checksum let secret scanners find a leaked token. */
export function makeToken(random: RandomInt): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH, random)
  return body + checksumOf(body)
}

/** Checks form and checksum: a mistyped token is refused without a query. */
export function isWellFormed(token: string): boolean {
  const body = token.slice(0, -CHECKSUM_LENGTH)
  return /^mh_[0-9A-Za-z]{28}$/.test(token) && token.endsWith(checksumOf(body))
}

export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest()

/** The part that lists show, too short to be of use. */
export const prefixOf = (token: string): string => token.slice(0, 8)

/** CRC-32 in base 62; six digits hold 32 bits. */
function checksumOf(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** 131 bits like an API token, with a prefix of its own. */
export function makeDeleteToken(random: RandomInt): { token: string; hash: Buffer } {
  const token = `md_${randomBase62(22, random)}`
  return { token, hash: hashToken(token) }
}
