import { createHmac, createPrivateKey, createPublicKey, type JsonWebKey, sign, verify } from 'node:crypto'

/** A key as /.well-known/jwks.json publishes it. */
export type PublishedKey = JsonWebKey & { kid: string }

const part = (token: string, index: number) =>
  JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString()) as Record<string, unknown>

/** Reads the claims of a token without verifying its signature. */
export const decodeJwt = (token: string) => part(token, 1)

/** Reads the key id in the header of a token. */
export const keyIdOf = (token: string) => part(token, 0).kid

/** Signs a token with these claims and this private key (ES256, RFC 7518 section 3.4), as auth does. */
export function signJwt(key: PublishedKey, claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${encode({ alg: 'ES256', typ: 'JWT', kid: key.kid })}.${encode(claims)}`
  const privateKey = createPrivateKey({ key, format: 'jwk' })
  return `${input}.${sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/**
 * Authorization with an admin token made from the secret (RFC 7515), as `tokens admin` makes it, without its process.
 */
export function adminBy(secret: string | undefined): { authorization: string } {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${encode({ alg: 'HS256' })}.${encode({ role: 'service_role' })}`
  const signature = createHmac('sha256', String(secret)).update(input).digest('base64url')
  return { authorization: `Bearer ${input}.${signature}` }
}

/** Reports whether one of these keys signed the token (ES256, RFC 7518 section 3.4). */
export function isSignedByOneOf(keys: readonly PublishedKey[], token: string): boolean {
  const jwk = keys.find(({ kid }) => kid === keyIdOf(token))
  if (!jwk) return false
  const [header = '', payload = '', signature = ''] = token.split('.')
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const signed = Buffer.from(`${header}.${payload}`)
  return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
}
