import { createHmac, timingSafeEqual } from 'node:crypto'

/** 132 bits in base64url: short in an address, and beyond guessing. */
const LENGTH = 22

/** Signs the path behind `/v/{signature}`: `/` options `/` id `.` extension. */
export const signVariant = (key: string, path: string): string =>
  createHmac('sha256', key).update(path).digest('base64url').slice(0, LENGTH)

/** Compares with the signatures of all keys, in the same time whichever is right, or none. */
export function isSigned(keys: readonly string[], signature: string, path: string): boolean {
  const given = Buffer.from(signature)
  let isRight = false
  for (const key of keys) {
    const expected = Buffer.from(signVariant(key, path))
    // A signature of another length is compared too, as if it were wrong.
    const comparable = given.length === expected.length ? given : Buffer.alloc(expected.length)
    if (timingSafeEqual(comparable, expected)) isRight = true
  }
  return isRight
}
