// Applications with openid-client and oauth4webapi, at the port of a running service.
import { decodeJwt, decodeProtectedHeader } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEVICE_GRANT } from '../../src/core/oauth-server/devices/redeem-device-code.ts'
import { CALLBACK } from '../../src/flows/oauth-server/testing/applications.ts'
import { visitor } from '../../src/flows/pages/oauth/testing/visitor.ts'
import { openPage } from '../../src/flows/pages/testing/pages.ts'
import type { SignedIn, TestService } from '../service.ts'
import {
  ALL_SCOPES,
  answer,
  application,
  bearerOf,
  fetchAt,
  ISSUER,
  publicApplication,
  startOAuthServer,
} from './application.ts'

let service: TestService
let url: string
let user: SignedIn
beforeAll(async () => {
  // Libraries compare times in tokens and proofs with the machine's clock.
  service = await startOAuthServer({}, () => new Date())
  url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  user = await service.signedIn('ada@example.com')
})
afterAll(() => service.close())

const discover = (id: string, authentication: openid.ClientAuth, algorithm: 'oidc' | 'oauth2' = 'oidc') =>
  openid.discovery(new URL(ISSUER), id, {}, authentication, { [openid.customFetch]: fetchAt(url), algorithm })

/** Sends the user through the consent page; the tokens of the code. */
async function signIn(
  config: openid.Configuration,
  { pushed = false, DPoP, ...parameters }: { pushed?: boolean; DPoP?: openid.DPoPHandle; [name: string]: unknown } = {},
) {
  const checks = {
    pkceCodeVerifier: openid.randomPKCECodeVerifier(),
    expectedState: openid.randomState(),
    expectedNonce: openid.randomNonce(),
  }
  const request = {
    ...{ redirect_uri: CALLBACK, scope: ALL_SCOPES, state: checks.expectedState, nonce: checks.expectedNonce },
    code_challenge: await openid.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: 'S256',
    ...(parameters as Record<string, string>),
  }
  const address = pushed
    ? await openid.buildAuthorizationUrlWithPAR(config, request, { DPoP })
    : openid.buildAuthorizationUrl(config, request)
  if (pushed) expect([...address.searchParams.keys()].toSorted()).toEqual(['client_id', 'request_uri'])
  const back = await answer(service, user, address)
  const callback = parameters.response_mode === 'form_post' ? await posted(back) : back
  return openid.authorizationCodeGrant(config, callback, { ...checks, idTokenExpected: true }, undefined, { DPoP })
}

/** Request of the browser to the application, once it has posted the form of the service's page. */
async function posted(page: URL): Promise<Request> {
  const { text } = await service.get(page.pathname)
  const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(text) ?? []
  const inputs = [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
  const body = new URLSearchParams(inputs.map(([, name = '', value = '']): [string, string] => [name, value]))
  return new Request(action, { method: 'POST', body })
}

const keyPair = () => crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify'])

describe('from discovery and a pushed request to introspection and revocation', () => {
  test.each(['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'])('by %s', async (method) => {
    const keys = await keyPair()
    const jwks = { keys: [{ ...(await crypto.subtle.exportKey('jwk', keys.publicKey)), kid: 'k', alg: 'ES256' }] }
    const { id, secret } = await application(service, {
      token_endpoint_auth_method: method,
      ...(method === 'private_key_jwt' && { jwks }),
    })
    const authentication = {
      client_secret_basic: () => openid.ClientSecretBasic(secret),
      client_secret_post: () => openid.ClientSecretPost(secret),
      private_key_jwt: () => openid.PrivateKeyJwt({ key: keys.privateKey, kid: 'k' }),
      none: () => openid.None(),
    }[method]
    const config = await discover(id, authentication?.() ?? expect.fail(method), method === 'none' ? 'oauth2' : 'oidc')

    const tokens = await signIn(config, { pushed: true })
    expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: ALL_SCOPES })
    const claims = { sub: user.userId, email: 'ada@example.com', email_verified: true }
    expect(tokens.claims()).toMatchObject({ ...claims, iss: ISSUER, aud: [id] })
    expect(decodeProtectedHeader(String(tokens.id_token))).toMatchObject({ alg: 'ES256', kid: 'oauth' })
    expect(await openid.fetchUserInfo(config, tokens.access_token, user.userId)).toMatchObject(claims)

    const renewed = await openid.refreshTokenGrant(config, String(tokens.refresh_token))
    if (method !== 'none') {
      expect(await openid.tokenIntrospection(config, renewed.access_token)).toMatchObject({
        ...{ active: true, sub: user.userId, client_id: id, scope: ALL_SCOPES },
      })
    }
    await openid.tokenRevocation(config, String(renewed.refresh_token))
    await expect(openid.refreshTokenGrant(config, String(renewed.refresh_token))).rejects.toMatchObject({
      error: 'invalid_grant',
    })
    await expect(openid.fetchUserInfo(config, renewed.access_token, user.userId)).rejects.toThrow()
  })
})

test('a code comes by a form that posts itself (form_post)', async () => {
  const { id, secret } = await application(service)
  const config = await discover(id, openid.ClientSecretBasic(secret))
  expect((await signIn(config, { response_mode: 'form_post' })).claims()?.sub).toBe(user.userId)
})

test('tokens are bound to a key (DPoP): without its proof they open nothing and renew nothing', async () => {
  const { id } = await publicApplication(service, { dpop_bound_access_tokens: true })
  const config = await discover(id, openid.None())
  const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair())
  const tokens = await signIn(config, { DPoP })
  expect(tokens.token_type).toBe('dpop')
  expect(decodeJwt(tokens.access_token)).toMatchObject({ cnf: { jkt: await DPoP.calculateThumbprint() } })
  expect(await openid.fetchUserInfo(config, tokens.access_token, user.userId, { DPoP })).toMatchObject({
    sub: user.userId,
  })
  const thief = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair())
  await expect(openid.fetchUserInfo(config, tokens.access_token, user.userId, { DPoP: thief })).rejects.toThrow()
  expect((await service.get('/oauth/userinfo', bearerOf(tokens.access_token))).status).toBe(401)
  await expect(openid.refreshTokenGrant(config, String(tokens.refresh_token), {}, { DPoP: thief })).rejects.toThrow()
  const renewed = await openid.refreshTokenGrant(config, String(tokens.refresh_token), {}, { DPoP })
  expect(renewed.token_type).toBe('dpop')
})

describe('a device', () => {
  /** A public client of devices, and what a user does with the link that its device shows. */
  async function device() {
    const { id } = await publicApplication(service, { grant_types: [DEVICE_GRANT, 'refresh_token'] })
    const person = await visitor(service)
    const answerAt = async (link = '', press: 'allow' | 'deny') => {
      const page = await person.signIn(await person.open(link.replace(ISSUER, '')))
      await person.press(page, { answer: press })
    }
    return { id, email: person.email, answerAt }
  }

  test('gets tokens once its user has agreed on the page', async () => {
    const { id, email, answerAt } = await device()
    const config = await discover(id, openid.None())
    const begun = await openid.initiateDeviceAuthorization(config, { scope: 'openid email offline_access' })
    await answerAt(begun.verification_uri_complete, 'allow')
    // The library waits before its first poll.
    const tokens = await openid.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0 })
    expect(tokens.claims()).toMatchObject({ aud: [id], email })
    const renewed = await openid.refreshTokenGrant(config, String(tokens.refresh_token))
    expect(await openid.fetchUserInfo(config, renewed.access_token, String(tokens.claims()?.sub))).toMatchObject({
      email,
    })
  })

  test('learns that its user has not answered, and that the user refused (oauth4webapi)', async () => {
    const { id, answerAt } = await device()
    const [client, options] = [{ client_id: id }, { [oauth.customFetch]: fetchAt(url) }]
    const found = await oauth.discoveryRequest(new URL(ISSUER), { ...options, algorithm: 'oauth2' })
    const as = await oauth.processDiscoveryResponse(new URL(ISSUER), found)
    const begin = async () => {
      const answered = await oauth.deviceAuthorizationRequest(as, client, oauth.None(), { scope: 'email' }, options)
      return oauth.processDeviceAuthorizationResponse(as, client, answered)
    }
    const poll = async (code: string) =>
      oauth.processDeviceCodeResponse(
        as,
        client,
        await oauth.deviceCodeGrantRequest(as, client, oauth.None(), code, options),
      )
    const [waiting, refused] = [await begin(), await begin()]
    await answerAt(refused.verification_uri_complete, 'deny')
    await expect(poll(waiting.device_code)).rejects.toMatchObject({ error: 'authorization_pending' })
    await expect(poll(refused.device_code)).rejects.toMatchObject({ error: 'access_denied' })
  })
})

test('an application ends its session, and the browser comes back to it with its state', async () => {
  const bye = 'https://app.example/bye'
  const { id, secret } = await application(service, { post_logout_redirect_uris: [bye] })
  const config = await discover(id, openid.ClientSecretBasic(secret))
  const tokens = await signIn(config)
  const state = openid.randomState()
  const address = openid.buildEndSessionUrl(config, {
    ...{ post_logout_redirect_uri: bye, id_token_hint: String(tokens.id_token), state },
  })
  const left = await openPage(service.otherBrowser(), address.pathname + address.search)
  expect(left.location).toBe(`${bye}?state=${state}`)
  await expect(openid.refreshTokenGrant(config, String(tokens.refresh_token))).rejects.toMatchObject({
    error: 'invalid_grant',
  })
})

test('a machine gets a token of its own, which opens what its scope says (oauth4webapi)', async () => {
  const grants = { grant_types: ['client_credentials'], scope: 'users:read', redirect_uris: [] }
  const { id, secret } = await application(service, grants)
  const options = { [oauth.customFetch]: fetchAt(url) }
  const found = await oauth.discoveryRequest(new URL(ISSUER), { ...options, algorithm: 'oauth2' })
  const as = await oauth.processDiscoveryResponse(new URL(ISSUER), found)
  const [client, authentication] = [{ client_id: id }, oauth.ClientSecretBasic(String(secret))]
  const given = await oauth.clientCredentialsGrantRequest(as, client, authentication, { scope: 'users:read' }, options)
  const { access_token, refresh_token } = await oauth.processClientCredentialsResponse(as, client, given)
  expect([refresh_token, decodeJwt(access_token).sub]).toEqual([undefined, id])
  expect((await service.get('/admin/users', bearerOf(access_token))).status).toBe(200)
  expect((await service.post('/admin/users', { email: 'x@example.com' }, bearerOf(access_token))).status).toBe(403)
})
