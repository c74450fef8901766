import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { json, startUpstream, type Upstream } from '../../../test/upstream.ts'
import { createProviders } from '../providers/index.ts'

let far: Upstream
let service: TestService
beforeAll(async () => {
  far = await startUpstream(json({}))
  service = await startTestService({
    AUTH_EXTERNAL_OIDC_CORP_ENABLED: 'true',
    AUTH_EXTERNAL_OIDC_CORP_CLIENT_ID: 'our-client',
    AUTH_EXTERNAL_OIDC_CORP_SECRET: 'secret',
    AUTH_EXTERNAL_OIDC_CORP_REDIRECT_URI: 'https://auth.example/callback',
    AUTH_EXTERNAL_OIDC_CORP_ISSUER: far.url,
    AUTH_WORKERS_ENABLED: 'false',
  })
})
afterAll(async () => {
  await service.close()
  await far.close()
})

/** The hash of the signature (OpenID Connect Core 3.1.3.8); Ed25519 signs SHA-512. */
test.each([
  ['RS256', 'sha256'],
  ['PS384', 'sha384'],
  ['ES512', 'sha512'],
  ['EdDSA', 'sha512'],
  ['Ed25519', 'sha512'],
])('an id_token by %s tells by %s which access token came with it', async (alg, digest) => {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const described = {
    issuer: far.url,
    authorization_endpoint: `${far.url}/authorize`,
    token_endpoint: `${far.url}/token`,
    jwks_uri: `${far.url}/keys`,
    keys: [{ ...(await exportJWK(publicKey)), alg, kid: alg }],
  }
  far.answer((response) => {
    response.setHeader('content-type', 'application/json')
    json(described)(response, '')
  })
  // Keys are kept for a while: only a new service asks for them.
  service.deps.providers = await createProviders(service.deps.config)
  const hash = createHash(digest).update('the right one').digest()
  const id_token = await new SignJWT({
    email: `${alg.toLowerCase()}@example.com`,
    email_verified: true,
    at_hash: hash.subarray(0, hash.length / 2).toString('base64url'),
  })
    .setProtectedHeader({ alg, kid: alg })
    .setIssuer(far.url)
    .setAudience('our-client')
    .setSubject(alg)
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(privateKey)
  const bring = async (access_token: string) =>
    (await service.post('/token?grant_type=id_token', { provider: 'corp', id_token, access_token })).status
  expect([await bring('another one'), await bring('the right one')]).toEqual([400, 200])
})
