import { createHash, timingSafeEqual } from 'node:crypto'
import type { ChallengeMethod } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'

/** Challenge that an application sends instead of its secret verifier (RFC 7636 4.2). */
export interface Pkce {
  challenge: string
  method: ChallengeMethod
}

/** RFC 7636 4.1: the alphabet and length of a verifier, and so of a plain challenge. */
const CHALLENGE = /^[A-Za-z0-9._~-]{43,128}$/

/**
 * Reads the challenge of a request, undefined for the implicit flow. Throws validation_failed for half a pair or a bad
 * one.
 */
export function parsePkce(body: {
  code_challenge?: string | undefined
  code_challenge_method?: string | undefined
}): Pkce | undefined {
  const { code_challenge: challenge = '', code_challenge_method: method = '' } = body
  if (challenge === '' && method === '') return undefined
  if (challenge === '' || method === '') {
    throw apiError('validation_failed', { message: 'code_challenge and code_challenge_method must be given together' })
  }
  if (!CHALLENGE.test(challenge)) {
    throw apiError('validation_failed', {
      message: 'code_challenge must be 43 to 128 characters of A-Z a-z 0-9 . _ ~ -',
    })
  }
  const lowered = method.toLowerCase()
  if (lowered !== 's256' && lowered !== 'plain') {
    throw apiError('validation_failed', { message: 'code_challenge_method must be s256 or plain' })
  }
  return { challenge, method: lowered }
}

/** Challenge of a stored row; undefined for the implicit flow. */
export const pkceOf = ({
  code_challenge: challenge,
  code_challenge_method: method,
}: {
  code_challenge: string | null
  code_challenge_method: ChallengeMethod | null
}): Pkce | undefined => (challenge && method ? { challenge, method } : undefined)

/** Returns the challenge of a verifier by S256. */
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** Whether the verifier belongs to the challenge (RFC 7636 4.6), in constant time. */
export function isVerifierOf({ challenge, method }: Pkce, verifier: string): boolean {
  const derived = method === 's256' ? challengeOf(verifier) : verifier
  const [given, expected] = [Buffer.from(derived), Buffer.from(challenge)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
