// Sign-ins at providers of the admin API, with two certified OpenID providers and a service with OAuth 2 alone
// (contract/auth-custom-providers.md 5, 6). The API itself: src/flows/admin/custom-providers/.
import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startLogFile } from './log-file.ts'
import { type OpenIdProvider, signInAt, startOpenIdProvider, visitFrom } from './openid-provider.ts'
import { fragmentOf, queryOf, startTestService, type TestService } from './service.ts'
import { serveInTest } from './upstream.ts'
import { type PlainOAuth2, startPlainOAuth2 } from './upstreams/plain-oauth2.ts'

const CLIENT = { client_id: 'our-client', client_secret: 'a-secret-of-the-client' }
const LOOPBACK = { AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' }

let corp: OpenIdProvider
let other: OpenIdProvider
let forge: PlainOAuth2
let service: TestService
beforeAll(async () => {
  ;[corp, other, forge] = await Promise.all([startOpenIdProvider(), startOpenIdProvider(), startPlainOAuth2()])
  // No job meets the fake timers below.
  const settings = { ...LOOPBACK, AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true', AUTH_WORKERS_ENABLED: 'false' }
  service = await startTestService(settings)
})
afterAll(async () => {
  await service.close()
  forge.close()
  await Promise.all([corp.close(), other.close()])
})
beforeEach(() => {
  forge.accepts = 'post'
  forge.forms.length = 0
})

let count = 0
async function add(given: object): Promise<string> {
  const identifier = `custom:p${++count}`
  const answer = await service.post(
    '/admin/custom-providers',
    { identifier, name: 'P', ...CLIENT, ...given },
    service.admin,
  )
  expect(answer.body).toMatchObject({ identifier })
  return identifier
}
const addOpenId = (given: object = {}, at = corp) =>
  add({ provider_type: 'oidc', issuer: at.issuer, scopes: ['profile', 'email'], ...given })
const addPlain = (given: object = {}) => add({ provider_type: 'oauth2', ...forge.addresses, ...given })
const change = (identifier: string, given: object) =>
  service.put(`/admin/custom-providers/${identifier}`, given, service.admin)

const person = (claims: object = {}) => {
  const sub = `person-${++count}`
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Ann', ...claims }
}
/** An id_token of a new person, by the clock of the service. */
const idTokenAt = (at: OpenIdProvider, claims: object = {}) => {
  const iat = Math.floor(service.clock.now().getTime() / 1000)
  return at.idToken({ ...person(), iat, exp: iat + 300, ...claims })
}
const userOf = async (answer: Awaited<ReturnType<TestService['get']>>, at = service) => {
  const { access_token } = fragmentOf(answer)
  return (await at.get('/user', { authorization: `Bearer ${access_token}` })).body
}
async function signInAtForge(identifier: string, profile: object, query = '') {
  forge.profile = profile
  const begun = await service.get(`/authorize?provider=${identifier}${query}`)
  return service.get(`/callback?${new URLSearchParams(forge.visit(String(begun.headers.location)))}`)
}

describe('at an OpenID provider', () => {
  test('a user signs in with PKCE, a nonce and the stored scopes and parameters', async () => {
    const identifier = await addOpenId({ scopes: ['profile', 'email'], authorization_params: { prompt: 'consent' } })
    const ann = person()
    corp.next(ann)
    const begun = new URL(String((await service.get(`/authorize?provider=${identifier}`)).headers.location))
    expect(begun.origin + begun.pathname).toBe(`${corp.issuer}/auth`)
    expect(Object.fromEntries(begun.searchParams)).toMatchObject({
      ...{ client_id: 'our-client', scope: 'openid profile email', prompt: 'consent', code_challenge_method: 'S256' },
      ...{ redirect_uri: 'https://auth.example/callback', nonce: expect.stringMatching(/.{20}/) },
    })
    const user = await userOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))
    expect(user).toMatchObject({
      email: ann.email,
      app_metadata: { provider: identifier, providers: [identifier] },
      identities: [{ provider: identifier, id: ann.sub, identity_data: { name: 'Ann', iss: corp.issuer } }],
    })
  })

  test('`scopes` of the application replace the stored ones, and keep openid', async () => {
    const identifier = await addOpenId({ scopes: ['profile', 'email'] })
    const begun = await service.get(`/authorize?provider=${identifier}&scopes=email%20offline_access`)
    expect(queryOf(begun).scope).toBe('openid email offline_access')
  })

  test('a public client needs no secret and sends none', async () => {
    const identifier = await addOpenId({ client_id: 'public-client', client_secret: undefined })
    const ann = person()
    corp.next(ann)
    expect((await userOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))).email).toBe(ann.email)
  })

  test('two providers are two, also for one account', async () => {
    const [here, there] = [await addOpenId(), await addOpenId({}, other)]
    const ann = person({ email_verified: false, email: undefined })
    await Promise.all([here, there].map((name) => change(name, { email_optional: true })))
    corp.next(ann)
    other.next(ann)
    const first = await userOf(await signInAt(service, corp, `/authorize?provider=${here}`))
    const second = await userOf(await signInAt(service, other, `/authorize?provider=${there}`))
    expect(first.id).not.toBe(second.id)
    expect((await userOf(await signInAt(service, corp, `/authorize?provider=${here}`))).id).toBe(first.id)
  })

  test('without an address an account signs in only where that is optional', async () => {
    const identifier = await addOpenId()
    corp.next({ sub: 'no-address' })
    const refused = queryOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))
    expect(refused.error_description).toContain('Error getting user email')
    await change(identifier, { email_optional: true })
    const user = await userOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))
    expect(user.identities[0].id).toBe('no-address')
  })

  test('`linking` decides whether a verified address joins a user', async () => {
    const [joins, never] = [await addOpenId(), await addOpenId({ linking: 'never' })]
    const { userId } = await service.signedIn('joined@example.com')
    corp.next(person({ email: 'joined@example.com' }))
    const refused = queryOf(await signInAt(service, corp, `/authorize?provider=${never}`))
    expect(refused.error_code).toBe('email_exists')
    expect((await userOf(await signInAt(service, corp, `/authorize?provider=${joins}`))).id).toBe(userId)
  })

  test('providers of one group link with each other, and with no other way in', async () => {
    const social = { linking: 'group:social' }
    const [one, two, free] = [await addOpenId(social), await addOpenId(social, other), await addOpenId()]
    const comeTo = async (identifier: string, at: OpenIdProvider, email: string) => {
      at.next(person({ email }))
      return signInAt(service, at, `/authorize?provider=${identifier}`)
    }
    const first = await userOf(await comeTo(one, corp, 'group@example.com'))
    expect((await userOf(await comeTo(two, other, 'group@example.com'))).id).toBe(first.id)
    expect(queryOf(await comeTo(free, corp, 'group@example.com')).error_code).toBe('email_exists')
    const { userId } = await service.signedIn('outside@example.com')
    expect(queryOf(await comeTo(one, corp, 'outside@example.com')).error_code).toBe('email_exists')
    expect((await userOf(await comeTo(free, corp, 'outside@example.com'))).id).toBe(userId)
  })

  test('a user links an account by hand, by a page that shows its name', async () => {
    const identifier = await addOpenId({ name: 'Corporate login' })
    const { auth, userId } = await service.signedIn()
    const url = `/user/identities/authorize?provider=${identifier}&skip_http_redirect=true`
    const { body } = await service.get(url, auth)
    const { pathname, search } = new URL(body.url)
    expect((await service.get(pathname + search)).text).toContain('Corporate login')
    corp.next(person())
    const callback = await visitFrom(service, corp, body.url)
    await service.get(callback.pathname + callback.search)
    const { identities } = (await service.get(`/admin/users/${userId}`, service.admin)).body
    expect(identities.map(({ provider }: { provider: string }) => provider)).toContain(identifier)
  })
})

describe('by id_token', () => {
  const grant = (body: object) => service.post('/token?grant_type=id_token', body)

  test('an application signs in, also for a further client and with a nonce', async () => {
    const identifier = await addOpenId({ acceptable_client_ids: ['the-app'] })
    const nonce = createHash('sha256').update('plain').digest('hex')
    const id_token = await idTokenAt(corp, { aud: 'the-app', nonce })
    expect((await grant({ provider: identifier, id_token })).body.msg).toContain('nonce')
    expect((await grant({ provider: identifier, id_token, nonce: 'plain' })).body.user.app_metadata.provider).toBe(
      identifier,
    )
    await change(identifier, { skip_nonce_check: true, acceptable_client_ids: [] })
    expect((await grant({ provider: identifier, id_token })).body.msg).toContain('Unacceptable audience')
    const own = await idTokenAt(corp, { nonce })
    expect((await grant({ provider: identifier, id_token: own })).status).toBe(200)
  })

  test('unknown, disabled and other providers are refused by name', async () => {
    const [disabled, plain] = [await addOpenId({ enabled: false }), await addPlain()]
    const id_token = await idTokenAt(corp)
    const answers: [string, string, string][] = [
      ['custom:none', 'validation_failed', 'Custom provider "custom:none" not found'],
      [disabled, 'provider_disabled', `Provider "${disabled}" is not enabled`],
      [plain, 'validation_failed', `Provider "${plain}" is not an OIDC provider`],
    ]
    for (const [provider, error_code, msg] of answers) {
      expect(await grant({ provider, id_token })).toMatchObject({ status: 400, body: { error_code, msg } })
    }
    expect((await grant({ provider: await addOpenId(), id_token: await idTokenAt(other) })).status).toBe(400)
  })
})

describe('at a service with OAuth 2 alone', () => {
  const PROFILE = {
    id: 4711,
    login: 'ann',
    avatar_url: 'https://forge.example/ann.png',
    contact: { emails: [{ value: 'ann@forge.example' }] },
    'https://forge.example/team': 'red',
    groups: ['a', 'b'],
    verified: true,
  }
  const MAPPING = {
    sub: 'id',
    user_name: 'login',
    email: 'contact.emails.0.value',
    team: 'https://forge.example/team',
    source: { constant: true },
  }

  test('paths, constants and a list of claims describe its account', async () => {
    const identifier = await addPlain({
      attribute_mapping: MAPPING,
      custom_claims_allowlist: ['groups', 'absent'],
      email_optional: true,
    })
    const refused = queryOf(await signInAtForge(identifier, { ...PROFILE, email_verified: true }))
    expect(refused.error_code).toBe('provider_email_needs_verification')
    expect(refused.error_description).toMatch(/^Unverified email with P\. /)
    const verified = { ...PROFILE, email: 'ann@forge.example', email_verified: true }
    const user = await userOf(await signInAtForge(identifier, verified))
    const expected = {
      ...{ user_name: 'ann', team: 'red', source: { constant: true }, avatar_url: PROFILE.avatar_url },
      custom_claims: { groups: ['a', 'b'] },
    }
    expect(user).toMatchObject({ email: 'ann@forge.example', user_metadata: expected })
    expect(user.identities[0]).toMatchObject({ id: '4711', identity_data: expected })
    expect(user.user_metadata).not.toHaveProperty('login')
  })

  test('a claim of the list that is too large is left out alone, with a log line', async () => {
    const lists = { custom_claims_allowlist: ['one', 'two', 'large'], attribute_mapping: { sub: 'id' } }
    const identifier = await addPlain({ ...lists, email_optional: true })
    const [one, two, large] = ['1'.repeat(1500), '2'.repeat(1500), '3'.repeat(3000)]
    const warned = vi.spyOn(service.deps.log, 'warn')
    onTestFinished(() => warned.mockRestore())
    const user = await userOf(await signInAtForge(identifier, { id: 'large', one, two, large }))
    expect(user.user_metadata.custom_claims).toEqual({ one, two })
    expect(warned).toHaveBeenCalledWith({ provider: identifier, claims: ['large'] }, 'claims left out: too large')
  })

  test('a value of the wrong type is left out alone, and an account without an id is refused', async () => {
    const misfit = { ...MAPPING, name: 'groups', email: 'verified' }
    const identifier = await addPlain({ attribute_mapping: misfit, email_optional: true })
    const user = await userOf(await signInAtForge(identifier, { ...PROFILE, id: 4712, name: 'Ann' }))
    expect(user).toMatchObject({ email: '', user_metadata: { name: 'Ann', user_name: 'ann', team: 'red' } })
    for (const id of ['', null, {}, undefined]) {
      const refused = queryOf(await signInAtForge(identifier, { ...PROFILE, id }))
      expect(refused.error_description).toContain('Error getting user profile')
    }
  })

  test.each(['basic', 'post', 'none'] as const)('client authentication "%s" is found out', async (accepts) => {
    const identifier = await addPlain({ attribute_mapping: { sub: 'id' }, email_optional: true })
    if (accepts === 'none') await change(identifier, { client_secret: null })
    forge.accepts = accepts
    for (const asked of [accepts === 'post' ? 2 : 1, 1]) {
      forge.forms.length = 0
      expect((await userOf(await signInAtForge(identifier, { id: `auth-${accepts}` }))).id).toBeTruthy()
      expect(forge.forms).toHaveLength(asked)
    }
  })

  test('without PKCE no challenge is sent', async () => {
    const identifier = await addPlain({ pkce_enabled: false, attribute_mapping: { sub: 'id' }, email_optional: true })
    const begun = await service.get(`/authorize?provider=${identifier}`)
    expect(queryOf(begun)).not.toHaveProperty('code_challenge')
    expect((await userOf(await signInAtForge(identifier, { id: 'no-pkce' }))).id).toBeTruthy()
  })
})

test.each(['custom:none', 'custom:', 'custom:Not-Valid!', `custom:${'x'.repeat(500)}`])(
  'GET /authorize knows no %s',
  async (provider) => {
    const answer = await service.get(`/authorize?provider=${encodeURIComponent(provider)}`)
    expect(answer).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    expect(answer.body.msg).toContain('Unsupported provider: ')
  },
)

describe('a change', () => {
  test('is known to every replica with its next request', async () => {
    const replica = await service.with({})
    const identifier = await addOpenId({ scopes: [] })
    const scopeAt = async (at: TestService) => queryOf(await at.get(`/authorize?provider=${identifier}`)).scope
    expect([await scopeAt(service), await scopeAt(replica)]).toEqual(['openid', 'openid'])
    await change(identifier, { scopes: ['email'] })
    expect([await scopeAt(service), await scopeAt(replica)]).toEqual(['openid email', 'openid email'])
    await change(identifier, { enabled: false })
    const refused = { status: 400, body: { msg: 'Unsupported provider: provider is not enabled' } }
    for (const at of [service, replica]) {
      expect(await at.get(`/authorize?provider=${identifier}`)).toMatchObject(refused)
    }
  })

  test('of secret or scopes leaves a running sign-in; one of the server ends it', async () => {
    const identifier = await addOpenId({ email_optional: true })
    const begin = () => {
      corp.next(person())
      return visitFrom(service, corp, `/authorize?provider=${identifier}`)
    }
    const kept = await begin()
    await change(identifier, { scopes: ['email'], name: 'New' })
    expect(fragmentOf(await service.get(kept.pathname + kept.search)).access_token).toBeTruthy()
    const ended = await begin()
    await change(identifier, { issuer: other.issuer })
    expect(queryOf(await service.get(ended.pathname + ended.search))).toMatchObject({
      error_code: 'bad_oauth_state',
      error_description: 'The provider was changed during this sign-in',
    })
  })

  describe('of the description', () => {
    /** A provider whose description names the token endpoint of `corp`, or the trap. */
    async function describedAnew(at: TestService) {
      const far = { isTrap: false, trapped: [] as string[] }
      const there = await serveInTest(async (request, response) => {
        if (request.url === '/trap') {
          far.trapped.push(await text(request))
          response.writeHead(400).end('{"error":"invalid_grant"}')
          return
        }
        const description = await fetch(`${corp.issuer}/.well-known/openid-configuration`)
        const known = (await description.json()) as object
        const isTrap = far.isTrap || request.url === '/moved-to-trap'
        response.end(JSON.stringify({ ...known, ...(isTrap && { token_endpoint: `${there}/trap` }) }))
      })
      const identifier = await addOpenId({ discovery_url: `${there}/first` })
      corp.next(person())
      const { pathname, search } = await visitFrom(at, corp, `/authorize?provider=${identifier}`)
      return { far, there, identifier, comeBack: () => at.get(pathname + search) }
    }

    test.each([
      [
        'another address for it',
        async (identifier: string, { there }: { there: string }) => {
          await change(identifier, { discovery_url: `${there}/moved-to-trap` })
        },
      ],
      [
        'its renewal',
        async (_identifier: string, { far }: { far: { isTrap: boolean } }) => {
          far.isTrap = true
          service.clock.advance({ seconds: 61 })
        },
      ],
    ])('with %s: no code reaches another token endpoint', async (_, changeIt) => {
      const at = await service.with({ AUTH_EXTERNAL_OIDC_PROVIDER_CACHE_TTL: '60s' })
      const { far, there, identifier, comeBack } = await describedAnew(at)
      await changeIt(identifier, { there, far })
      expect(queryOf(await comeBack())).toMatchObject({
        error_code: 'bad_oauth_state',
        error_description: 'The provider was changed during this sign-in',
      })
      expect(far.trapped).toEqual([])
    })

    test('to an address with the same endpoints leaves a running sign-in', async () => {
      const { there, identifier, comeBack } = await describedAnew(service)
      await change(identifier, { discovery_url: `${there}/second` })
      expect(fragmentOf(await comeBack()).access_token).toBeTruthy()
    })
  })

  test('a deletion ends running sign-ins, and leaves users and identities', async () => {
    const identifier = await addOpenId()
    const ann = person()
    corp.next(ann)
    const { id } = await userOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))
    const running = await visitFrom(service, corp, `/authorize?provider=${identifier}`)
    await service.delete(`/admin/custom-providers/${identifier}`, service.admin)
    expect(queryOf(await service.get(running.pathname + running.search))).toMatchObject({
      error_code: 'oauth_provider_not_supported',
    })
    const { body } = await service.get(`/admin/users/${id}`, service.admin)
    expect(body).toMatchObject({ email: ann.email, identities: [{ provider: identifier }] })
  })
})

// A list that takes a busy database a second follows behind an answer: hence the polls.
describe('GET /settings', () => {
  const shownAt = async (at: TestService) => (await at.get('/settings')).body.external_custom
  const pass = () => service.clock.advance({ seconds: 3 })

  test('shows enabled and listed providers by name, on all replicas within seconds', async () => {
    const replica = await service.with({})
    const own = { provider_type: 'oidc', issuer: corp.issuer }
    const listed = await add({ ...own, name: '0 first' })
    const shown = { identifier: listed, name: '0 first' }
    await Promise.all([
      add({ ...own, name: '0 hidden', listed: false }),
      add({ ...own, name: '0 off', enabled: false }),
    ])
    pass()
    for (const at of [service, replica]) {
      const named = async () => (await shownAt(at)).filter(({ name }: { name: string }) => name.startsWith('0 '))
      await expect.poll(named).toEqual([shown])
    }
    await service.delete(`/admin/custom-providers/${listed}`, service.admin)
    pass()
    for (const at of [service, replica]) await expect.poll(() => shownAt(at)).not.toContainEqual(shown)
    expect(await shownAt(await service.with({ AUTH_CUSTOM_OAUTH_ENABLED: 'false' }))).toEqual([])
  })

  test('leaves out a provider that a later setting of the same name shadows', async () => {
    const identifier = await addPlain({ name: 'shadowed' })
    const name = identifier.slice('custom:'.length).toUpperCase()
    const later = await service.with(other.settings(`OIDC_${name}`))
    const warned = vi.spyOn(later.deps.log, 'warn')
    for (const _ of [1, 2]) {
      expect((await shownAt(later)).map((shown: { identifier: string }) => shown.identifier)).not.toContain(identifier)
      pass()
    }
    const lines = () =>
      warned.mock.calls.filter(([, message]) => message === 'provider shadowed by one of the settings')
    await expect.poll(lines).toEqual([[{ provider: identifier }, expect.any(String)]])
  })

  test('while the database hangs, one request waits for a moment, and the next ones for nothing', async () => {
    const identifier = await addPlain({ name: 'known' })
    const replica = await service.with({})
    const known = expect.arrayContaining([{ identifier, name: 'known' }])
    await expect.poll(() => shownAt(replica)).toEqual(known)
    pass()
    const holder = await service.deps.pool.connect()
    onTestFinished(() => holder.release())
    await holder.query('begin')
    await holder.query('lock table custom_providers in access exclusive mode')
    expect(await shownAt(replica)).toEqual(known)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    expect(await shownAt(replica)).toEqual(known)
    vi.useRealTimers()
    await holder.query('rollback')
    await service.delete(`/admin/custom-providers/${identifier}`, service.admin)
    pass()
    await expect.poll(() => shownAt(replica)).not.toEqual(known)
  })

  test('a thousand providers are listed, to admins by pages of a thousand', async () => {
    const identifier = await addPlain({ name: 'many' })
    await service.deps.pool.query(
      `insert into custom_providers select (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(),
        'identifier', 'custom:many-' || n))).* from custom_providers p, generate_series(1, 1000) n
        where identifier = $1`,
      [identifier],
    )
    onTestFinished(async () => void (await service.deps.pool.query(`delete from custom_providers where name = 'many'`)))
    pass()
    await expect.poll(async () => (await shownAt(service)).length).toBeGreaterThan(1000)
    const whole = await service.get('/admin/custom-providers?type=oauth2', service.admin)
    expect(whole.headers.link).toMatch(/^<\/admin\/custom-providers\?page=2&type=oauth2>; rel="next", /)
    const rest = await service.get('/admin/custom-providers?page=2&type=oauth2', service.admin)
    expect(rest.headers.link).not.toContain('next')
    const pages = [whole, rest].map(({ body }) => body.providers as { identifier: string }[])
    expect(pages[0]).toHaveLength(1000)
    const identifiers = new Set(pages.flat().map(({ identifier }) => identifier))
    expect(String(identifiers.size)).toBe(whole.headers['x-total-count'])
  })
})

describe('a description', () => {
  /** A provider that hands on the description of `corp`, changed, as long as `isFine`. */
  async function behindShelf(change: Record<string, string> = {}) {
    const shelf = { isFine: true, fetched: 0, change }
    const there = await serveInTest(async (_request, response) => {
      shelf.fetched++
      if (!shelf.isFine) return void response.writeHead(503).end()
      const description = await fetch(`${corp.issuer}/.well-known/openid-configuration`)
      response.end(JSON.stringify({ ...((await description.json()) as object), ...shelf.change }))
    })
    const identifier = await addOpenId({ discovery_url: `${there}/elsewhere`, email_optional: true })
    return { shelf, identifier, begin: (at = service) => at.get(`/authorize?provider=${identifier}`) }
  }

  test('is used for an hour, then renewed; while it cannot be had, the last one serves', async () => {
    const { shelf, begin } = await behindShelf()
    const isBegun = async () => String((await begin()).headers.location).startsWith(`${corp.issuer}/auth`)
    expect([await isBegun(), await isBegun(), shelf.fetched]).toEqual([true, true, 1])
    service.clock.advance({ seconds: 3601 })
    shelf.isFine = false
    expect([await isBegun(), await isBegun(), shelf.fetched]).toEqual([true, true, 2])
    service.clock.advance({ seconds: 31 })
    shelf.isFine = true
    expect([await isBegun(), await isBegun(), shelf.fetched]).toEqual([true, true, 3])
  })

  test('that was renewed is the one that other processes begin with', async () => {
    const { shelf, begin, identifier } = await behindShelf()
    service.clock.advance({ seconds: 3601 })
    await begin()
    const started = await service.with({})
    const begun = await started.get(`/authorize?provider=${identifier}`)
    expect([begun.status, shelf.fetched]).toEqual([302, 2])
    const { body } = await service.get(`/admin/custom-providers/${identifier}`, service.admin)
    expect(body.updated_at).toBe(body.created_at)
  })

  /** A server in a network that `closed` does not permit, and the number of its requests. */
  async function startInside() {
    const inside = { requests: 0, address: '' }
    inside.address = await serveInTest((_request, response) => {
      inside.requests++
      response.writeHead(503).end()
    }, '127.0.0.2')
    return { inside, closed: await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.1/32' }) }
  }

  test('that is known names keys, which are fetched from permitted networks only', async () => {
    const { inside, closed } = await startInside()
    const { identifier } = await behindShelf({ jwks_uri: `${inside.address}/keys` })
    const iat = service.clock.now().getTime() / 1000
    const id_token = await corp.idToken({ ...person(), iat, exp: 4e9 })
    const signInAt = (at: TestService) => at.post('/token?grant_type=id_token', { provider: identifier, id_token })
    expect([(await signInAt(closed)).status, inside.requests]).toEqual([503, 0])
    expect([(await signInAt(service)).status, inside.requests > 0]).toEqual([503, true])
  })

  test.each(['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'])(
    'that is renewed and now names a private %s is refused: the last one serves, and nothing is sent there',
    async (name) => {
      const { inside, closed } = await startInside()
      const { shelf, identifier } = await behindShelf()
      corp.next(person())
      shelf.change = { [name]: `${inside.address}/x` }
      service.clock.advance({ seconds: 3601 })
      const warned = vi.spyOn(closed.deps.log, 'warn')
      onTestFinished(() => warned.mockRestore())
      const user = await userOf(await signInAt(closed, corp, `/authorize?provider=${identifier}`), closed)
      expect([user.app_metadata.provider, inside.requests]).toEqual([identifier, 0])
      const reason = { message: `${name}: URL cannot point to localhost or loopback addresses` }
      expect(warned).toHaveBeenCalledWith(
        { provider: identifier, err: expect.objectContaining(reason) },
        'description of a provider could not be fetched',
      )
      const { body } = await service.get(`/admin/custom-providers/${identifier}`, service.admin)
      expect(JSON.stringify(body.discovery_document)).not.toContain(inside.address)
    },
  )

  test('at an address of its own serves id_tokens, too', async () => {
    const { shelf, identifier } = await behindShelf()
    service.clock.advance({ seconds: 3601 })
    const id_token = await idTokenAt(corp)
    const answer = await service.post('/token?grant_type=id_token', { provider: identifier, id_token })
    expect([answer.status, shelf.fetched]).toEqual([200, 2])
  })
})

test('the log names provider, member and field of a failure, and holds no secret, code or token', async () => {
  const log = await startLogFile('debug')
  const logged = await service.with(log.settings)
  const mapping = { sub: 'id', name: 'id' }
  const identifier = await addPlain({ attribute_mapping: mapping, client_secret: 'another-secret-entirely' })
  const codes: string[] = []
  const comeTo = async (profile: object) => {
    forge.profile = profile
    const begun = await logged.get(`/authorize?provider=${identifier}`)
    const callback = forge.visit(String(begun.headers.location))
    codes.push(callback.code as string)
    return queryOf(await logged.get(`/callback?${new URLSearchParams(callback)}`))
  }
  expect((await comeTo({ id: 1 })).error_code).toBe('unexpected_failure')
  await logged.put(`/admin/custom-providers/${identifier}`, CLIENT, logged.admin)
  expect((await comeTo({ id: 1 })).error_description).toContain('Error getting user email')
  await new Promise((written) => logged.deps.log.flush(written))
  expect(await log.about('attribute mapping ignored: the value has the wrong type')).toMatchObject([
    { provider: identifier, member: 'name' },
  ])
  expect((await log.about('sign-in at a provider ended without a session')).at(-1)).toMatchObject({
    ...{ provider: identifier, setting: 'email_optional' },
  })
  const secrets = [CLIENT.client_secret, 'another-secret-entirely', 'the-access-token', ...codes]
  const written = await log.text()
  expect(secrets.filter((secret) => written.includes(secret))).toEqual([])
})

test('a secret that cannot be decrypted is a failure of ours, and an id_token needs none', async () => {
  const identifier = await addOpenId()
  await service.deps.db
    .updateTable('custom_providers')
    .set({ sealed_secret: 'not-sealed' })
    .where('identifier', '=', identifier)
    .execute()
  corp.next(person())
  expect(queryOf(await signInAt(service, corp, `/authorize?provider=${identifier}`))).toMatchObject({
    ...{ error: 'server_error', error_code: 'unexpected_failure' },
    error_description: 'Something went wrong on our side',
  })
  const id_token = await idTokenAt(corp)
  expect((await service.post('/token?grant_type=id_token', { provider: identifier, id_token })).status).toBe(200)
})

test('a failure of the database is no refusal, and nothing of it reaches the browser', async () => {
  const begun = await service.get(`/authorize?provider=${await addPlain()}`)
  const callback = forge.visit(String(begun.headers.location))
  await service.deps.pool.query('alter table custom_providers rename to elsewhere')
  onTestFinished(async () => void (await service.deps.pool.query('alter table elsewhere rename to custom_providers')))
  const answer = queryOf(await service.get(`/callback?${new URLSearchParams(callback)}`))
  expect(answer).toMatchObject({ error: 'server_error', error_code: 'unexpected_failure' })
  expect(answer.error_description).not.toMatch(/relation|custom_providers/)
})

test('switched off, no provider of the API signs in', async () => {
  const identifier = await addOpenId()
  const off = await service.with({ AUTH_CUSTOM_OAUTH_ENABLED: 'false' })
  expect((await off.get(`/authorize?provider=${identifier}`)).body.msg).toContain('Unsupported provider: ')
  const id_token = await idTokenAt(corp)
  expect((await off.post('/token?grant_type=id_token', { provider: identifier, id_token })).status).toBe(400)
})

test('no secret, code or token follows a redirect of the provider', async () => {
  const trap: string[] = []
  const there = await serveInTest((request, response) => {
    if (request.url?.startsWith('/trap')) trap.push(request.url)
    response.writeHead(307, { location: '/trap' }).end()
  })
  for (const [field, failure] of [
    ['token_url', 'Unable to exchange external code'],
    ['userinfo_url', 'Error getting user profile'],
  ] as const) {
    const identifier = await addPlain({ [field]: `${there}/x`, email_optional: true })
    expect(queryOf(await signInAtForge(identifier, { sub: '1' })).error_description).toContain(failure)
  }
  expect(trap).toEqual([])
})

test('another base of the redirect address is what the provider gets', async () => {
  const elsewhere = await service.with({ AUTH_CUSTOM_OAUTH_EXTERNAL_URL: 'https://auth.example/behind' })
  const begun = await elsewhere.get(`/authorize?provider=${await addOpenId()}`)
  expect(queryOf(begun).redirect_uri).toBe('https://auth.example/behind/callback')
})

test.each(['userinfo_url', 'token_url'])('the %s of a saved provider is checked where it is used', async (field) => {
  let requests = 0
  const inside = await serveInTest((_request, response) => {
    requests++
    response.writeHead(503).end()
  }, '127.0.0.2')
  const identifier = await addPlain({ [field]: `${inside}/x`, email_optional: true })
  const closed = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.1/32' })
  const finishAt = async (at: TestService) => {
    forge.profile = { sub: '1' }
    const begun = await at.get(`/authorize?provider=${identifier}`)
    await at.get(`/callback?${new URLSearchParams(forge.visit(String(begun.headers.location)))}`)
    return requests
  }
  expect(await finishAt(closed)).toBe(0)
  expect(await finishAt(service)).toBeGreaterThan(0)
})

test('addresses of a saved provider are checked again where they are used', async () => {
  const identifier = await addOpenId({ email_optional: true })
  const closed = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '' })
  corp.next(person())
  const callback = await visitFrom(service, corp, `/authorize?provider=${identifier}`)
  const answer = queryOf(await closed.get(callback.pathname + callback.search))
  expect(answer).toMatchObject({ error_code: 'unexpected_failure' })
  expect(answer.error_description).toContain('Unable to exchange external code')
})
