import { jsonObject } from '../adapters/json-object.ts'

/** Time before the expiry from which on it is warned of: an operator has to sign a new secret by hand. */
export const WARN_BEFORE_SECONDS = 14 * 86_400

/**
 * Returns the expiry of Apple's client secret: a JWT that the operator signs, valid for six months at most. Undefined
 * for a text that is none.
 */
export function expiryOfAppleSecret(secret: string): Date | undefined {
  const [header = '', claims = '', signature, ...more] = secret.split('.')
  if (!signature || more.length > 0) return undefined
  try {
    const [{ alg }, { exp }] = [partOf(header), partOf(claims)]
    return typeof alg === 'string' && typeof exp === 'number' ? new Date(exp * 1000) : undefined
  } catch {
    return undefined
  }
}

const partOf = (part: string) => jsonObject(Buffer.from(part, 'base64url').toString(), 'must be a JSON object')
