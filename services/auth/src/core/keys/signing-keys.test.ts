import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import type { JwtKey } from './jwt-keys.ts'
import { importSigningKeys } from './signing-keys.ts'

test.for<[string, number, boolean]>([
  ['an ordinary token is', 100, true],
  ['a token with much metadata is not', 40_000, false],
])('%s cached after its first verification, and is valid each time', async ([, size, isRemembered]) => {
  const keys = await importSigningKeys({ secret: 'a-secret-of-the-tests-with-32-bytes-or-more' })
  const claims = { sub: 'somebody', user_metadata: { note: 'x'.repeat(size) } }
  const token = await keys.sign(claims)
  const [first, second] = [await keys.verify(token, new Date()), await keys.verify(token, new Date())]
  expect([first, second]).toEqual([claims, claims])
  expect(first === second).toBe(isRemembered)
})

test('no key stands in for another: a public key is no secret, the secret is no key, and keys in a token are ignored', async () => {
  const secret = 'a-secret-of-the-tests-with-32-bytes-or-more'
  const [own, foreign] = await Promise.all([1, 2].map(() => generateKeyPair('ES256', { extractable: true })))
  if (!own || !foreign) throw new Error('no keys')
  const jwk = { ...(await exportJWK(own.privateKey)), kid: 'own', alg: 'ES256', key_ops: ['sign', 'verify'] } as JwtKey
  const keys = await importSigningKeys({ secret, keys: [jwk] })
  const [published] = keys.publicJwks
  const pem = createPublicKey({ key: published as JsonWebKey, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const jwkOfForeign = await exportJWK(foreign.publicKey)
  const signed = (
    header: { alg: string; kid?: string; jwk?: object; jku?: string },
    key: Parameters<SignJWT['sign']>[0],
  ) => new SignJWT({ sub: 'somebody' }).setProtectedHeader(header as { alg: string }).sign(key)
  const bytes = (text: string) => new TextEncoder().encode(text)
  const forged = [
    await signed({ alg: 'HS256', kid: 'own' }, bytes(String(pem))),
    await signed({ alg: 'HS256' }, bytes(String(pem))),
    await signed({ alg: 'HS256' }, bytes(JSON.stringify(published))),
    await signed({ alg: 'HS256', kid: 'own' }, bytes(secret)),
    await signed({ alg: 'HS512' }, bytes(secret.repeat(2))),
    await signed({ alg: 'ES256', kid: 'own' }, foreign.privateKey),
    await signed({ alg: 'ES256', kid: 'foreign', jwk: jwkOfForeign }, foreign.privateKey),
    await signed({ alg: 'ES256', jwk: jwkOfForeign, jku: 'https://evil.example/jwks.json' }, foreign.privateKey),
    `${Buffer.from('{"alg":"none","kid":"own"}').toString('base64url')}.e30.`,
  ]
  for (const token of forged) expect([token, await keys.verify(token, new Date())]).toEqual([token, undefined])
  expect(await keys.verify(await signed({ alg: 'HS256' }, bytes(secret)), new Date())).toEqual({ sub: 'somebody' })
})

test.for<[string | undefined, boolean]>([
  [undefined, true],
  ['JWT', true],
  ['jwt', true],
  ['at+jwt', true],
  ['application/at+JWT', true],
  ['', false],
  ['id_token', false],
  ['secevent+jwt', false],
  ['logout+jwt', false],
  ['oauth-authz-req+jwt', false],
])('a token of the type %s is an access token: %s', async ([typ, isAccepted]) => {
  const secret = 'a-secret-of-the-tests-with-32-bytes-or-more'
  const keys = await importSigningKeys({ secret })
  const header = typ === undefined ? { alg: 'HS256' } : { alg: 'HS256', typ }
  const token = await new SignJWT({ sub: 'somebody' }).setProtectedHeader(header).sign(new TextEncoder().encode(secret))
  for (let i = 0; i < 2; i++) {
    expect(await keys.verify(token, new Date())).toEqual(isAccepted ? { sub: 'somebody' } : undefined)
  }
})
