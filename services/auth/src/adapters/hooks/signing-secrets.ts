// Signatures of Standard Webhooks (https://www.standardwebhooks.com): a receiver accepts any of several, so that
// secrets can be replaced one after the other.
import { createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto'

/** Signs a text, with the prefix of its scheme. */
export type Signer = (text: string) => string

/** Parses secrets separated by `|`: `v1,whsec_…` (HMAC) or `v1a,whpk_…:whsk_…` (Ed25519). */
export const parseSigningSecrets = (value: string): Signer[] =>
  value
    .split('|')
    .map((piece) => piece.trim())
    .filter(Boolean)
    .map(signerOf)

function signerOf(secret: string): Signer {
  const [, symmetric] = /^v1,whsec_(.+)$/.exec(secret) ?? []
  if (symmetric !== undefined) return hmacSigner(bytesOf(symmetric))
  const [, publicKey, privateKey] = /^v1a,whpk_([^:]+):whsk_(.+)$/.exec(secret) ?? []
  if (publicKey === undefined || privateKey === undefined) throw new Error(FORMS)
  return ed25519Signer(bytesOf(publicKey), bytesOf(privateKey))
}

const FORMS =
  'must list secrets as v1,whsec_ and the base64 of 24 to 64 bytes, or as v1a,whpk_…:whsk_… (Ed25519), separated by |'

function bytesOf(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.toString('base64').replace(/=+$/, '') !== base64.replace(/=+$/, '')) throw new Error(FORMS)
  return bytes
}

function hmacSigner(key: Buffer): Signer {
  if (key.length < 24 || key.length > 64) throw new Error(FORMS)
  return (text) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}

/** PKCS #8 of an Ed25519 key before its 32 bytes (RFC 8410 7). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A private key is its 32 bytes alone, or followed by the public key. */
function ed25519Signer(publicKey: Buffer, privateKey: Buffer): Signer {
  if (privateKey.length !== 32 && privateKey.length !== 64) throw new Error(FORMS)
  const der = Buffer.concat([PKCS8_HEAD, privateKey.subarray(0, 32)])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const own = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  if (!own.equals(publicKey)) throw new Error('must list v1a secrets whose two keys belong together')
  return (text) => `v1a,${sign(null, Buffer.from(text), key).toString('base64')}`
}

/** Headers of a signed message; without secrets it is not signed. */
export function signedHeaders(
  signers: readonly Signer[],
  { id, body, now }: { id: string; body: string; now: Date },
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000))
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (signers.length === 0) return headers
  const signatures = signers.map((signText) => signText(`${id}.${timestamp}.${body}`))
  return { ...headers, 'webhook-signature': signatures.join(' ') }
}
