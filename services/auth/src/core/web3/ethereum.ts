import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { apiError } from '../../errors.ts'
import type { SignatureScheme } from './signature-scheme.ts'

/** r, s and the recovery byte. */
const SIGNATURE = /^(?:0x)?([\da-f]{130})$/i
const HEX = /^(?:0x)?[\da-f]*$/i

/**
 * Signatures by `personal_sign` (ERC-191). Both forms of s are accepted: a message is used once, whatever its
 * signature.
 */
export const ethereumSignatures: SignatureScheme = {
  readSignature(text) {
    const [, digits] = SIGNATURE.exec(text) ?? []
    if (digits) return Buffer.from(digits, 'hex')
    // Contracts give longer signatures, which only a node of the chain can check.
    const isOfContract = text.length > 132 && HEX.test(text)
    throw apiError('validation_failed', {
      message: isOfContract
        ? 'signatures of smart contract wallets (ERC-1271, ERC-6492) are not supported'
        : 'signature must be 65 bytes in hexadecimal digits',
    })
  },
  isSigned: ({ address, bytes }, signature) => recoverAddress(bytes, signature) === address.toLowerCase(),
}

/** Returns the address in lower case whose key made the signature; undefined if none can have. */
function recoverAddress(message: Buffer, signature: Buffer): string | undefined {
  const last = signature[64] as number
  const recovery = last >= 27 ? last - 27 : last
  if (recovery !== 0 && recovery !== 1) return undefined
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`)
  const hash = keccak_256(Buffer.concat([prefix, message]))
  try {
    const { r, s } = secp256k1.Signature.fromBytes(signature.subarray(0, 64), 'compact')
    const key = new secp256k1.Signature(r, s, recovery).recoverPublicKey(hash).toBytes(false)
    return `0x${Buffer.from(keccak_256(key.subarray(1)).subarray(-20)).toString('hex')}`
  } catch {
    // Numbers out of range, or no point of the curve: no key signed this.
    return undefined
  }
}
