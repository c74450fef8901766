import { createPublicKey, verify } from 'node:crypto'
import { base58 } from '@scure/base'
import { apiError } from '../../errors.ts'
import type { SignatureScheme } from './signature-scheme.ts'

/** 64 bytes in either alphabet of base64. */
const SIGNATURE = /^[\w+/-]{86}(?:==)?$/

const KEY_BYTES = 32
const DOMAIN_BYTES = 32

/** Ed25519 signatures of the message itself, or of the off-chain form that hardware wallets sign. */
export const solanaSignatures: SignatureScheme = {
  readSignature(text) {
    const bytes = SIGNATURE.test(text) ? Buffer.from(text, 'base64') : undefined
    if (bytes?.length === 64) return bytes
    throw apiError('validation_failed', { message: 'signature must be 64 bytes in base64 or base64url' })
  },
  isSigned({ address, domain, bytes }, signature) {
    const key = Buffer.from(base58.decode(address))
    if (key.length !== KEY_BYTES) return false
    const publicKey = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') },
      format: 'jwk',
    })
    // Also false for keys that are no point of the curve, and for those of small order, whose signatures fit any
    // message.
    const isSigned = (content: Buffer) => verify(null, content, publicKey, signature)
    return isSigned(bytes) || isSigned(offChain(key, domain, bytes))
  },
}

/** Solana's off-chain message with one signer, in the form of Ledger. */
function offChain(key: Buffer, domain: string, message: Buffer): Buffer {
  const application = Buffer.alloc(DOMAIN_BYTES)
  Buffer.from(domain).copy(application)
  const length = Buffer.alloc(2)
  length.writeUInt16LE(message.length)
  const head = Buffer.concat([Buffer.from([0xff]), Buffer.from('solana offchain'), Buffer.from([0])])
  return Buffer.concat([head, application, Buffer.from([0, 1]), key, length, message])
}
