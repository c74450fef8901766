import type { JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROVIDER_EXAMPLES } from '../../../test/upstreams/provider-examples.ts'
import { type SignInProviders, startSignInProviders } from '../../../test/upstreams/sign-in-providers.ts'
import type { ExternalProvider, OidcProviderSettings } from '../../config/external-providers.ts'
import { PROVIDERS } from '../providers/index.ts'
import { oidcProvider } from '../providers/oidc.ts'
import { createIdTokenVerifier } from './id-token.ts'
import type { Endpoints, Provider } from './provider.ts'

const OF_TOKEN = { iss: 'https://issuer.example', aud: 'us', exp: 2, iat: 1, sub: 'the-sub' }
const CLAIMS = { ...OF_TOKEN, email: 'a@example.com', email_verified: true, name: 'Ann', picture: 'https://p.example' }
const ENDPOINTS: Endpoints = { issuer: 'https://issuer.example', authorize: '', token: '', api: '' }

const accountOf = (provider: Provider, claims: JWTPayload) =>
  provider.protocol === 'oauth2' ? provider.accountOfIdToken?.(claims, ENDPOINTS) : undefined

const PEOPLE = { name: 'Ann', full_name: 'Ann', picture: 'https://p.example', avatar_url: 'https://p.example' }

describe('an id_token alone yields the account', () => {
  test.each<[ExternalProvider, object]>([
    ['facebook', PEOPLE],
    ['google', PEOPLE],
    ['keycloak', PEOPLE],
    ['snapchat', PEOPLE],
    ['azure', { full_name: 'Ann' }],
    ['apple', {}],
  ])('of %s', (name, claims) => {
    const account = accountOf(PROVIDERS[name], CLAIMS)
    expect(account?.sub).toBe('the-sub')
    expect(account?.emails).toEqual([{ email: 'a@example.com', verified: true, primary: true }])
    expect(account?.claims).toMatchObject({ iss: 'https://issuer.example', ...claims })
  })

  test.each<ExternalProvider>(['google', 'keycloak', 'snapchat', 'apple'])(
    'of %s, which says that the address is not verified',
    (name) => {
      const account = accountOf(PROVIDERS[name], { ...CLAIMS, email_verified: false })
      expect(account?.emails).toEqual([{ email: 'a@example.com', verified: false, primary: true }])
    },
  )

  test.each([
    ['https://login.microsoftonline.com/common', false],
    ['https://login.microsoftonline.com/organizations', false],
    ['https://login.microsoftonline.com/consumers', true],
    ['https://login.microsoftonline.com/7c5d2f4e-0000-4000-8000-000000000000', true],
  ])('of azure at %s, where no word of the owner of the domain is good: %j', (base, verified) => {
    const endpoints = PROVIDERS.azure.endpoints(base) as Endpoints
    const read = (claims: JWTPayload) =>
      PROVIDERS.azure.protocol === 'oauth2'
        ? PROVIDERS.azure.accountOfIdToken?.(claims, endpoints).emails[0]
        : undefined
    expect(read(CLAIMS)?.verified).toBe(verified)
    expect(read({ ...CLAIMS, xms_edov: true })?.verified).toBe(true)
    expect(read({ ...CLAIMS, xms_edov: false })?.verified).toBe(false)
  })

  test('of keycloak: claims about the token itself are no claims of the account', () => {
    const account = accountOf(PROVIDERS.keycloak, { ...CLAIMS, azp: 'us', typ: 'ID', groups: ['staff'] })
    expect(account?.claims.custom_claims).toEqual({ groups: ['staff'] })
  })

  const ownProvider = (claims: object) =>
    oidcProvider({ issuer: 'https://issuer.example', claims } as unknown as OidcProviderSettings)

  test("of an operator's own provider, by the claims it was told to read", () => {
    const provider = ownProvider({ full_name: 'displayName', email: 'upn' })
    const account = accountOf(provider, { ...CLAIMS, displayName: 'Ann Own', upn: CLAIMS.email })
    expect(account).toMatchObject({
      sub: 'the-sub',
      emails: [{ email: CLAIMS.email, verified: true, primary: true }],
      claims: { name: 'Ann', full_name: 'Ann Own', iss: 'https://issuer.example' },
    })
  })

  test.each([
    [{ email: 'upn' }, {}, false],
    [{ email: 'upn' }, { email: undefined }, false],
    [{ email: 'upn', email_verified: 'upn_verified' }, { upn_verified: true }, true],
    [{ email: 'upn', email_verified: 'upn_verified' }, { upn_verified: 'true' }, false],
    [{ email: 'upn', email_verified: 'upn_verified' }, {}, false],
    [{ email_verified: 'is_checked' }, { upn: CLAIMS.email }, false],
  ])('of such a provider, a mapping %j with %j verifies the address: %s', (mapping, claims, verified) => {
    const account = accountOf(ownProvider(mapping), { ...CLAIMS, upn: 'ann@corp.example', ...claims })
    expect(account?.emails.map((email) => email.verified)).toEqual([verified])
    expect(account?.claims).not.toHaveProperty('email_verified')
  })

  test.each([
    [{ employee_id: '42' }, '42'],
    [{}, undefined],
    [{ employee_id: { is: '42' } }, undefined],
    [{ employee_id: null }, undefined],
  ])('of such a provider with another id, %j is the account %s', (claims, sub) => {
    const account = accountOf(ownProvider({ sub: 'employee_id' }), { ...CLAIMS, ...claims })
    expect(account?.sub).toBe(sub)
  })
})

describe('keys that are asked for', () => {
  let far: SignInProviders
  beforeAll(async () => {
    far = await startSignInProviders(PROVIDER_EXAMPLES)
  })
  afterAll(() => far.close())

  test('are found by the description of the issuer', async () => {
    const token = await far.idToken({ iss: far.base('google'), aud: 'us', sub: 'the-sub' })
    const rules = { jwks: { discover: far.base('google') }, isIssuer: () => true }
    const claims = await createIdTokenVerifier(5000)(token, { rules, audiences: ['us'], now: new Date() })
    expect(claims.sub).toBe('the-sub')
  })

  test('are asked for again after a failure', async () => {
    const token = await far.idToken({ iss: far.base('google'), aud: 'us', sub: 'the-sub' })
    const rules = { jwks: { discover: far.base('google') }, isIssuer: () => true }
    const verify = createIdTokenVerifier(5000)
    far.answer('google', 'description', (response) => void response.destroy())
    await expect(verify(token, { rules, audiences: ['us'], now: new Date() })).rejects.toThrow()
    far.answer('google', 'description')
    expect(await verify(token, { rules, audiences: ['us'], now: new Date() })).toMatchObject({ sub: 'the-sub' })
  })
})
