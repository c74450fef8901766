// API tokens: how they look, who holds them, what they allow. The one rule: a token is shown once and stored as a hash.
// Looking one up: tokens.store.ts. The command line: token-commands.ts. The header: ../http/authenticate.ts.
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'mh_'
const RANDOM_LENGTH = 22
const CHECKSUM_LENGTH = 6

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Below `max`, every value equally likely. */
export type RandomInt = (max: number) => number

export function randomBase62(length: number, random: RandomInt): string {
  return Array.from({ length }, () => BASE62[random(BASE62.length)]).join('')
}

/** 131 bits of randomness, found by secret scanners because of its prefix and checksum. */
export function makeToken(random: RandomInt): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH, random)
  return body + checksumOf(body)
}

/** Whether it could be one of ours: a mistyped token is refused without a look at the database. */
export function isWellFormed(token: string): boolean {
  const body = token.slice(0, -CHECKSUM_LENGTH)
  return /^mh_[0-9A-Za-z]{28}$/.test(token) && token.endsWith(checksumOf(body))
}

export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest()

/** What lists show; too little to be of use to anybody. */
export const prefixOf = (token: string): string => token.slice(0, 8)

/** CRC-32 in base 62: 62^6 is more than 2^32. */
function checksumOf(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}
