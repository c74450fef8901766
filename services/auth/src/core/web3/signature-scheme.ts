import type { SignedMessage } from './signed-message.ts'

/** Signatures by the addresses of a chain. */
export interface SignatureScheme {
  /** Reads a signature's text; throws validation_failed for another form. */
  readSignature(text: string): Buffer
  /** Whether the key of the message's address signed it; false for anything malformed. */
  isSigned(message: SignedMessage, signature: Buffer): boolean
}
