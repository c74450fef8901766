import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { RandomBytes } from '../../one-time-tokens/one-time-token.ts'

/** Life of a code, and of the page that posts it, from the answer on (RFC 6749 4.1.2 permits ten minutes). */
export const CODE_SECONDS = 60

/**
 * Makes the code of a request: 32 bytes that only the key's owner can know. It is the same each time, so that a page
 * that is loaded twice gets one address, while the row keeps the hash alone.
 */
export const codeOf = (key: KeyObject, id: string): string => macOf(key, `code ${id}`)

export const hashAuthorizationCode = (code: string): Buffer => createHash('sha256').update(code).digest()

/**
 * Makes the name of the page that posts an answer. The id alone does not open it: the application that began the
 * request knows that.
 */
export const pageIdOf = (key: KeyObject, id: string): string => id + macOf(key, `page ${id}`)

/** Returns the id of the request whose page this is; undefined for any other text. */
export function requestOfPage(key: KeyObject, pageId: string): string | undefined {
  const id = pageId.slice(0, -MAC_LENGTH)
  const [given, made] = [pageId, pageIdOf(key, id)].map((text) => Buffer.from(text))
  return given && made && given.length === made.length && timingSafeEqual(given, made) ? id : undefined
}

const macOf = (key: KeyObject, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

const MAC_LENGTH = 43

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Makes the id of a request: 32 random letters and digits, without a bias towards any. */
export function newRequestId(random: RandomBytes): string {
  let id = ''
  while (id.length < 32) {
    for (const byte of random(48)) if (byte < 248 && id.length < 32) id += LETTERS[byte % 62]
  }
  return id
}
