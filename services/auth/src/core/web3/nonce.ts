import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'

/** Time to read and sign a message. */
const LIFETIME_SECONDS = 600

const RANDOM_BYTES = 8
/** Issue time in seconds and random bytes. */
const HEAD_BYTES = 4 + RANDOM_BYTES
const TAG_BYTES = 12
const NONCE = new RegExp(`^[\\da-f]{${2 * (HEAD_BYTES + TAG_BYTES)}}$`)

interface NonceDeps {
  web3NonceKey: KeyObject
  now: () => Date
}

/** Makes a nonce, which is stored only once it has been used: a flood of requests takes no space. */
export function makeNonce({ web3NonceKey, now, random }: NonceDeps & { random: RandomBytes }) {
  const issuedAt = Math.floor(now().getTime() / 1000)
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32BE(issuedAt)
  random(RANDOM_BYTES).copy(head, 4)
  const nonce = Buffer.concat([head, tagOf(web3NonceKey, head)]).toString('hex')
  return { nonce, expires_at: issuedAt + LIFETIME_SECONDS }
}

/** Returns when a nonce of this service expires; undefined for another or an expired one. */
export function nonceExpiry({ web3NonceKey, now }: NonceDeps, nonce: string): Date | undefined {
  if (!NONCE.test(nonce)) return undefined
  const bytes = Buffer.from(nonce, 'hex')
  const head = bytes.subarray(0, HEAD_BYTES)
  if (!timingSafeEqual(bytes.subarray(HEAD_BYTES), tagOf(web3NonceKey, head))) return undefined
  const expiresAt = new Date((head.readUInt32BE() + LIFETIME_SECONDS) * 1000)
  return expiresAt > now() ? expiresAt : undefined
}

const tagOf = (key: KeyObject, head: Buffer) => createHmac('sha256', key).update(head).digest().subarray(0, TAG_BYTES)
