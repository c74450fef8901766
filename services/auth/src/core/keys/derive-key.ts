import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { SealedPurpose } from './sealed-columns.ts'

type Use =
  | 'refresh-token'
  | 'one-time-code'
  | 'outbox'
  | 'check'
  | 'attempt'
  | 'web3-nonce'
  | 'trusted-device'
  | 'passkey-challenge'
  | 'page'
  | 'browser-session'
  | 'oauth-code'
  | `sealed ${SealedPurpose}`

/** Derives a key for one use (RFC 5869). A key object makes an HMAC take 3 µs, not 19 µs as with bytes (measured). */
export const deriveKey = (secret: string | Uint8Array, use: Use): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', use, 32)))
