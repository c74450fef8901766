// Discovery of the OAuth server (contract/auth-oauth-server.md 6). While it is disabled:
// core/keys/openid-configuration.test.ts.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { oauthSettings } from '../oauth-server/testing/applications.ts'

const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

let service: TestService
beforeAll(async () => {
  service = await startTestService(await oauthSettings())
})
afterAll(() => service.close())

test('both documents are one, which may be cached and names what there is', async () => {
  const [openid, oauth] = [await service.get(OPENID), await service.get(OAUTH)]
  expect([oauth.status, oauth.headers['cache-control']]).toEqual([200, 'public, max-age=600'])
  expect(oauth.body).toEqual(openid.body)
  expect(oauth.body).toMatchObject({
    issuer: 'https://auth.example',
    jwks_uri: 'https://auth.example/.well-known/jwks.json',
    authorization_endpoint: 'https://auth.example/oauth/authorize',
    scopes_supported: ['openid', 'email', 'phone', 'profile', 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'form_post'],
    grant_types_supported: expect.arrayContaining(['authorization_code', 'refresh_token']),
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    token_endpoint: 'https://auth.example/oauth/token',
    dpop_signing_alg_values_supported: expect.arrayContaining(['ES256', 'EdDSA']),
    introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  })
})

test('each endpoint in it exists', async () => {
  const { body } = await service.get(OPENID)
  const paths = (await service.get('/openapi.json')).body.paths
  const endpoints = Object.entries<string>(body).filter(([name]) => name.endsWith('_endpoint'))
  expect(endpoints.length).toBeGreaterThan(0)
  for (const [, address] of endpoints) expect(Object.keys(paths)).toContain(address.replace('https://auth.example', ''))
})

test('devices are listed while the hosted pages that they need are enabled', async () => {
  const grant = 'urn:ietf:params:oauth:grant-type:device_code'
  const { body } = await service.get(OAUTH)
  expect([body.device_authorization_endpoint, body.grant_types_supported.includes(grant)]).toEqual([undefined, false])
  const paged = await service.with({ AUTH_HOSTED_PAGES_ENABLED: 'true' })
  expect((await paged.get(OAUTH)).body).toMatchObject({
    device_authorization_endpoint: 'https://auth.example/oauth/device_authorization',
    grant_types_supported: expect.arrayContaining([grant]),
  })
  await paged.close()
})

test('registration is listed while clients may register themselves', async () => {
  expect((await service.get(OAUTH)).body).not.toHaveProperty('registration_endpoint')
  const open = await service.with({ AUTH_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true' })
  expect((await open.get(OAUTH)).body.registration_endpoint).toBe('https://auth.example/oauth/clients/register')
  await open.close()
})

test('an issuer with a path is found in both places of each document', async () => {
  const below = await service.with({ AUTH_API_EXTERNAL_URL: 'https://auth.example/auth/v1' })
  const paths = [OPENID, OAUTH].flatMap((path) => [path, `/auth/v1${path}`, `${path}/auth/v1`])
  const answers = await Promise.all(paths.map((path) => below.get(path)))
  expect(answers.map(({ status, body }) => [status, body.issuer])).toEqual(
    paths.map(() => [200, 'https://auth.example/auth/v1']),
  )
  expect((await below.get(`${OAUTH}/other`)).status).toBe(404)
  expect((await service.get(`${OAUTH}/auth/v1`)).status).toBe(404)
  await below.close()
})

test('while the server is disabled, clients of OAuth find nothing', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  expect(await off.get(OAUTH)).toMatchObject({ status: 404, body: { error_code: 'feature_disabled' } })
  expect((await off.get(OPENID)).body).not.toHaveProperty('authorization_endpoint')
  await off.close()
})

test.each<[string, Record<string, string>, RegExp]>([
  ['plain http', { AUTH_API_EXTERNAL_URL: 'http://auth.example' }, /AUTH_API_EXTERNAL_URL must be https/],
  ['an issuer of another name', { AUTH_JWT_ISSUER: 'my-project' }, /AUTH_JWT_ISSUER must be AUTH_API_EXTERNAL_URL/],
  [
    'no page that asks users',
    { AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '' },
    /needs AUTH_OAUTH_SERVER_AUTHORIZATION_PATH or/,
  ],
  ['a page elsewhere', { AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '//evil.example' }, /must begin with one slash/],
])('the start refuses %s', async (_, settings, problem) => {
  await expect(service.with(settings)).rejects.toThrow(problem)
})

test('hosted pages ask users where the application has no page', async () => {
  const hosted = await service.with({ AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '', AUTH_HOSTED_PAGES_ENABLED: 'true' })
  expect(hosted.deps.config.oauthServer.consentPath).toBeUndefined()
  await hosted.close()
})
