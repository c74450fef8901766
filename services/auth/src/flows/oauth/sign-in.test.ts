import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, signInAt, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { fragmentOf, linkPath, queryOf, startTestService, type TestService, tokenIn } from '../../../test/service.ts'
import { createEncryption } from '../../core/keys/encryption.ts'

const KEYCLOAK_ROUTES = {
  authorization: '/protocol/openid-connect/auth',
  token: '/protocol/openid-connect/token',
  userinfo: '/protocol/openid-connect/userinfo',
  jwks: '/protocol/openid-connect/certs',
}
const password = 'correct horse'

let google: OpenIdProvider
let realm: OpenIdProvider
let corp: OpenIdProvider
let service: TestService
beforeAll(async () => {
  ;[google, realm, corp] = await Promise.all([
    startOpenIdProvider(),
    startOpenIdProvider(KEYCLOAK_ROUTES),
    startOpenIdProvider(),
  ])
  service = await startTestService({
    ...google.settings('GOOGLE'),
    ...realm.settings('KEYCLOAK'),
    ...corp.settings('OIDC_CORP'),
    AUTH_EXTERNAL_OIDC_CORP_CLAIMS: '{"user_name":"department"}',
    AUTH_URI_ALLOW_LIST: 'https://app.example/**',
  })
})
afterAll(async () => {
  await service.close()
  await Promise.all([google, realm, corp].map((provider) => provider.close()))
})

const begin = async (provider: string, query = '') =>
  String((await service.get(`/authorize?provider=${provider}${query}`)).headers.location)

const back = (callback: URL) => service.get(callback.pathname + callback.search)

/** One whole way: to the provider, through its pages, and back. */
async function signIn(at: OpenIdProvider, provider: string, query = '') {
  const answer = await signInAt(service, at, `/authorize?provider=${provider}${query}`)
  expect(answer.status).toBe(302)
  return answer
}

async function userOf(answer: Awaited<ReturnType<typeof signIn>>) {
  const { access_token } = fragmentOf(answer)
  return (await service.get('/user', { authorization: `Bearer ${access_token}` })).body
}

let people = 0
const newPerson = (more: object = {}) => {
  const sub = `person-${people++}`
  return { sub, email: `${sub}@example.com`, email_verified: true, name: `Person ${sub}`, ...more }
}

describe.each([
  ['google', () => google],
  ['keycloak', () => realm],
  ['corp', () => corp],
] as const)('a real OpenID provider as %s:', (name, at) => {
  test('a stranger with a verified address gets an account and a session', async () => {
    const person = newPerson({ email: `New.${name}@example.com`, department: 'Sales' })
    at().next(person)
    const answer = await signIn(at(), name, '&redirect_to=https://app.example/home%3Fkeep=1')
    expect(answer.headers.location).toMatch(/^https:\/\/app\.example\/home\?keep=1#access_token=/)
    expect(Object.keys(fragmentOf(answer))).toEqual(
      expect.arrayContaining(['access_token', 'expires_at', 'expires_in', 'provider_token', 'refresh_token', 'sb']),
    )
    expect(fragmentOf(answer)).toMatchObject({ token_type: 'bearer', provider: name })
    const user = await userOf(answer)
    expect(user).toMatchObject({
      email: `new.${name}@example.com`,
      app_metadata: { provider: name, providers: [name] },
      user_metadata: { full_name: person.name, email_verified: true },
      identities: [{ id: person.sub, provider: name, identity_data: { sub: person.sub, provider_id: person.sub } }],
    })
    expect(user.email_confirmed_at).toBeTruthy()
    const claims = { google: undefined, keycloak: undefined, corp: 'Sales' }[name]
    expect(user.identities[0].identity_data.user_name).toBe(claims)
  })

  test('a returning user gets the same account, with the current data of the provider', async () => {
    const person = newPerson()
    at().next(person)
    const first = await userOf(await signIn(at(), name))
    at().next({ ...person, name: 'Renamed' })
    const second = await userOf(await signIn(at(), name))
    expect([second.id, second.user_metadata.full_name]).toEqual([first.id, 'Renamed'])
    expect(second.identities).toHaveLength(1)
  })

  test('with a code challenge the answer is a code, which with its verifier gives the session', async () => {
    const verifier = randomBytes(32).toString('base64url')
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const person = newPerson()
    at().next(person)
    const answer = await signIn(at(), name, `&code_challenge=${challenge}&code_challenge_method=s256`)
    expect(String(answer.headers.location)).not.toContain('#')
    const exchange = (code_verifier: string) =>
      service.post('/token?grant_type=pkce', { auth_code: queryOf(answer).code, code_verifier })
    expect((await exchange('another'.repeat(9))).body.error_code).toBe('bad_code_verifier')
    const { status, body } = await exchange(verifier)
    expect([status, body.user.email]).toEqual([200, person.email])
    expect(body.provider_token).toEqual(expect.any(String))
    expect(JSON.parse(Buffer.from(body.access_token.split('.')[1], 'base64url').toString()).amr[0].method).toBe('oauth')
    expect((await exchange(verifier)).body.error_code).toBe('flow_state_not_found')
  })

  test('a user who refuses returns with the error of the provider', async () => {
    at().next('denied')
    const answer = await signIn(at(), name, '&redirect_to=https://app.example/home')
    const said = { error: 'access_denied', error_description: 'The user said no' }
    expect(queryOf(answer)).toEqual(said)
    expect(fragmentOf(answer)).toEqual({ ...said, sb: '' })
  })

  test('keys that changed since are looked up, even twice within the second in which they are fetched once', async () => {
    for (let changes = 0; changes < 3; changes++) {
      at().next(newPerson())
      expect(fragmentOf(await signIn(at(), name)).access_token).toBeTruthy()
      await at().rotateKeys()
    }
    at().next(newPerson())
    expect(fragmentOf(await signIn(at(), name)).access_token).toBeTruthy()
  })
})

describe('a state', () => {
  const refusal = (answer: Awaited<ReturnType<typeof back>>) => {
    expect([answer.status, String(answer.headers.location).split('?')[0]]).toEqual([303, 'https://site.example'])
    expect(String(answer.headers.location)).not.toContain('#')
    return queryOf(answer)
  }

  test('that is missing, malformed or unknown ends at the site', async () => {
    const ask = async (query: string) => refusal(await service.get(`/callback?code=x${query}`)).error_code
    expect([
      await ask(''),
      await ask('&state=x'),
      await ask('&state=00000000-0000-4000-8000-000000000000'),
      (refusal(await service.get('/callback')) as { error_code: string }).error_code,
    ]).toEqual(['bad_oauth_callback', 'bad_oauth_state', 'bad_oauth_state', 'bad_oauth_callback'])
  })

  test('among answers that are none ends at the site too', async () => {
    const posted = await service.app.inject({ method: 'POST', url: '/callback' })
    const answers = [
      await service.get('/callback?state=a&state=b'),
      await service.get('/callback?state=a&code=x&code=y'),
      { status: posted.statusCode, headers: posted.headers, body: undefined, text: '' },
    ]
    expect(answers.map((answer) => refusal(answer).error_code)).toEqual(Array(3).fill('bad_oauth_callback'))
  })

  test('lives for five minutes', async () => {
    google.next(newPerson())
    const callback = await google.visit(await begin('google'))
    service.clock.advance({ seconds: 301 })
    expect(refusal(await back(callback))).toEqual({
      error: 'invalid_request',
      error_code: 'bad_oauth_state',
      error_description: 'OAuth state has expired',
    })
  })

  test.each([
    ['', 'bad_oauth_state'],
    [`&code_challenge=${'c'.repeat(43)}&code_challenge_method=plain`, 'flow_state_already_used'],
  ])('is worth one sign-in, of ten at once too (%s)', async (query, code) => {
    google.next(newPerson())
    const callback = await google.visit(await begin('google', query))
    const answers = await Promise.all(Array.from({ length: 10 }, () => back(callback)))
    const refused = answers.filter(({ status }) => status === 303)
    expect([answers.length - refused.length, refused.length]).toEqual([1, 9])
    for (const answer of refused) expect(refusal(answer).error_code).toBe(code)
  })

  test('of one provider cannot be answered by another', async () => {
    google.next(newPerson())
    corp.next(newPerson())
    const [atGoogle, atCorp] = [await google.visit(await begin('google')), await corp.visit(await begin('corp'))]
    atGoogle.searchParams.set('code', atCorp.searchParams.get('code') as string)
    atGoogle.searchParams.delete('iss')
    expect(queryOf(await back(atGoogle)).error_description).toMatch(/^Unable to exchange external code: .{4}$/)
    // The provider names itself (RFC 9207).
    const mixedUp = await google.visit(await begin('google'))
    mixedUp.searchParams.set('iss', corp.issuer)
    expect(queryOf(await back(mixedUp)).error_code).toBe('unexpected_failure')
  })

  test("does not take another attempt's code", async () => {
    google.next(newPerson({ name: 'Victim' }))
    const stolen = await google.visit(await begin('google'))
    google.next(newPerson({ name: 'Thief' }))
    const own = await google.visit(await begin('google'))
    own.searchParams.set('code', stolen.searchParams.get('code') as string)
    expect(queryOf(await back(own)).error_description).toMatch(/^Unable to exchange/)
  })
})

describe('an account that has the address', () => {
  test('is linked by a verified address, keeps its data and its owner gets a mail', async () => {
    const own = await service.with({ AUTH_MAILER_NOTIFICATIONS_IDENTITY_LINKED_ENABLED: 'true' })
    const person = newPerson()
    const { userId } = await own.signedUp(person.email, password)
    const confirmation = await own.mailbox.waitFor(person.email)
    google.next(person)
    const answer = await signInAt(own, google, '/authorize?provider=google')
    const { access_token } = fragmentOf(answer)
    const { body: user } = await own.get('/user', { authorization: `Bearer ${access_token}` })
    expect(user.id).toBe(userId)
    expect(user.app_metadata.providers).toEqual(['email', 'google'])
    expect((await own.post('/token?grant_type=password', { email: person.email, password })).status).toBe(200)
    const told = await own.mailbox.waitFor(person.email, { after: confirmation })
    expect(told.text).toContain('google')
    await own.close()
  })

  test('is not linked by an address the provider has not verified', async () => {
    const person = newPerson({ email_verified: false })
    const { userId } = await service.signedIn(person.email, password)
    google.next(person)
    const answer = await signIn(google, 'google')
    expect(queryOf(answer)).toMatchObject({
      error: 'access_denied',
      error_code: 'provider_email_needs_verification',
    })
    const { body } = await service.get(`/admin/users/${userId}`, service.admin)
    expect(body.identities).toHaveLength(1)
  })

  test('that is unproven is taken over whole: password, data and sessions of its maker are gone', async () => {
    const person = newPerson()
    await service.post('/signup', { email: person.email, password, data: { planted: true } })
    const registrants = await service.mailbox.waitFor(person.email)
    google.next(person)
    const user = await userOf(await signIn(google, 'google'))
    expect(user.app_metadata.providers).toEqual(['google'])
    expect(user.user_metadata).not.toHaveProperty('planted')
    expect((await service.post('/token?grant_type=password', { email: person.email, password })).status).toBe(400)
    const link = /token=([^&\s]+)/.exec(registrants.text)?.[1]
    expect((await service.post('/verify', { type: 'signup', token_hash: link })).body.error_code).toBe('otp_expired')
  })

  test('with a number of its own loses an address it never proved, and is not linked', async () => {
    const person = newPerson()
    await service.post('/signup', { email: person.email, password })
    await service.mailbox.waitFor(person.email)
    const phone = { phone: '4915100000041', phone_confirmed_at: service.clock.now() }
    const made = service.deps.db.updateTable('users').set(phone).where('email', '=', person.email).returning('id')
    const registrant = await made.executeTakeFirstOrThrow()
    google.next(person)
    const user = await userOf(await signIn(google, 'google'))
    expect(user.id).not.toBe(registrant.id)
    expect((await service.get(`/admin/users/${registrant.id}`, service.admin)).body.email).toBe('')
  })

  test('that a stranger made at another provider, unproven and without a mail, no longer lets them in', async () => {
    const own = await service.with({ AUTH_EXTERNAL_EMAIL_ENABLED: 'false', AUTH_SMTP_HOST: '' })
    const come = (at: OpenIdProvider, name: string) => signInAt(own, at, `/authorize?provider=${name}`)
    const owner = newPerson()
    const registrant = { ...newPerson(), email: owner.email, email_verified: false }
    corp.next(registrant)
    expect(queryOf(await come(corp, 'corp')).error_code).toBe('provider_email_needs_verification')
    google.next(owner)
    const { access_token } = fragmentOf(await come(google, 'google'))
    const { body } = await own.get('/user', { authorization: `Bearer ${access_token}` })
    expect(body.app_metadata.providers).toEqual(['google'])
    corp.next(registrant)
    expect(queryOf(await come(corp, 'corp')).error_code).toBe('provider_email_needs_verification')
    await own.close()
  })

  test('is left alone where the provider may not link', async () => {
    const own = await service.with({ AUTH_EXTERNAL_GOOGLE_LINKING: 'never' })
    const person = newPerson()
    await own.signedIn(person.email, password)
    google.next(person)
    expect(queryOf(await signInAt(own, google, '/authorize?provider=google')).error_code).toBe('email_exists')
    await own.close()
  })
})

test('an address that a stranger registered is confirmed without what the stranger put there', async () => {
  const person = newPerson({ email_verified: false })
  const planted = { email: person.email, password: 'the stranger knows', data: { planted: true } }
  await service.post('/signup', planted)
  const first = await service.mailbox.waitFor(person.email)
  google.next(person)
  // Within the gap the mail of the sign-up is all there is.
  expect(queryOf(await signIn(google, 'google')).error_code).toBe('provider_email_needs_verification')
  const { access_token } = fragmentOf(await service.get(linkPath(first.text)))
  const { body } = await service.get('/user', { authorization: `Bearer ${access_token}` })
  expect(body.user_metadata).not.toHaveProperty('planted')
  const stranger = await service.post('/token?grant_type=password', planted)
  expect(stranger.body.error_code).toBe('invalid_credentials')
})

test('an unverified address is confirmed by mail first, and then signs in', async () => {
  const person = newPerson({ email_verified: false })
  google.next(person)
  const refused = await signIn(google, 'google')
  expect(queryOf(refused).error_description).toBe(
    'Unverified email with google. A confirmation email has been sent to your google email',
  )
  const mail = await service.mailbox.waitFor(person.email)
  // Repeated at once: no second mail, and the answer says so.
  const again = await signIn(google, 'google')
  expect(queryOf(again).error_description).toContain('Verify the email with google')
  const link = new URL(/https?:\/\/\S+\/verify\?\S+/.exec(mail.text)?.[0] as string)
  expect(fragmentOf(await service.get(link.pathname + link.search)).access_token).toBeTruthy()
  expect((await userOf(await signIn(google, 'google'))).email).toBe(person.email)
})

test('of one stranger coming by two providers at once there is one account, and both let them in', async () => {
  for (let tries = 0; tries < 5; tries++) {
    const person = newPerson()
    google.next(person)
    corp.next({ ...person, sub: `at-corp-${person.sub}` })
    const callbacks = [await google.visit(await begin('google')), await corp.visit(await begin('corp'))]
    const users = await Promise.all((await Promise.all(callbacks.map(back))).map(userOf))
    expect(new Set(users.map(({ id }) => id)).size).toBe(1)
    expect(users[0].id).toBeTruthy()
  }
})

test('an unverified address gets the same answer whether or not a user has it, even the second time', async () => {
  const unknown = newPerson({ email_verified: false })
  const known = newPerson({ email_verified: false })
  // Confirmed without a mail, which would delay the next one.
  const { body: made } = await service.post('/admin/users', { email: known.email, email_confirm: true }, service.admin)
  const told = []
  for (const person of [known, unknown, known, unknown]) {
    google.next(person)
    told.push(queryOf(await signIn(google, 'google')))
  }
  expect(told[0]).toEqual(told[1])
  expect(told[2]).toEqual(told[3])
  const { body } = await service.get(`/admin/users/${made.id}`, service.admin)
  expect(body.identities).toHaveLength(1)
  // A user who has confirmed the address gets no link, and learns of the attempt.
  await service.settled()
  const mails = service.mailbox.messages({ to: known.email })
  expect(mails.map(({ subject }) => subject)).toEqual(['You already have an account'])
})

test('of one stranger coming ten times at once there is one account', async () => {
  const person = newPerson()
  google.next(person)
  const callbacks = await Promise.all(Array.from({ length: 10 }, async () => google.visit(await begin('google'))))
  const answers = await Promise.all(callbacks.map(back))
  const users = await Promise.all(answers.map(userOf))
  expect(new Set(users.map(({ id }) => id)).size).toBe(1)
  const { rowCount } = await service.deps.pool.query('select from users where email = $1', [person.email])
  expect(rowCount).toBe(1)
})

describe('GET /authorize', () => {
  test.each([
    ['provider=nowhere', 400, 'validation_failed', 'Unsupported provider: Provider nowhere could not be found'],
    ['provider=github', 400, 'validation_failed', 'Unsupported provider: provider is not enabled'],
    ['', 400, 'validation_failed', 'Unsupported provider: Provider  could not be found'],
    ['provider=google&code_challenge=x', 400, 'validation_failed', expect.any(String)],
    ['provider=google&invite_token=x', 404, 'user_not_found', 'User identified by token not found'],
    ['provider=google&provider=google', 400, 'bad_json', expect.any(String)],
  ])('refuses %s', async (query, status, error_code, msg) => {
    expect(await service.get(`/authorize?${query}`)).toMatchObject({ status, body: { error_code, msg } })
  })

  test('passes on foreign parameters, adds scopes, and accepts none that names another client', async () => {
    const { origin, searchParams } = new URL(
      await begin(
        'google',
        '&scopes=a b,c&prompt=consent&login_hint=x&client_id=evil&redirect_uri=https://evil.example',
      ),
    )
    expect(origin).toBe(google.issuer)
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: 'code',
      client_id: 'our-client',
      redirect_uri: 'https://auth.example/callback',
      scope: 'openid email profile a b c',
      state: expect.stringMatching(/^[0-9a-f-]{36}$/),
      prompt: 'consent',
      login_hint: 'x',
      nonce: expect.any(String),
      code_challenge: expect.any(String),
      code_challenge_method: 'S256',
    })
  })

  test('leads back to the site where the wanted target is not permitted', async () => {
    google.next(newPerson())
    const answer = await signIn(google, 'google', '&redirect_to=https://evil.example/')
    expect(answer.headers.location).toMatch(/^https:\/\/site\.example#access_token/)
  })

  test('keeps the secrets of an attempt sealed', async () => {
    const nonce = String(new URL(await begin('google')).searchParams.get('nonce'))
    expect(nonce).toMatch(/^[\w-]{20,}$/)
    const { rows } = await service.deps.pool.query('select * from flow_states order by created_at desc limit 1')
    const bytes = Buffer.from(rows[0].sealed.split('.').at(-1), 'base64').toString('latin1')
    expect(JSON.stringify(rows) + bytes).not.toContain(nonce)
  })
})

test('an invited user joins by the provider that knows the invited address', async () => {
  const person = newPerson()
  await service.post('/invite', { email: person.email, data: { team: 'a' } }, service.admin)
  const mail = await service.mailbox.waitFor(person.email)
  const token = /token=([^&\s]+)/.exec(mail.text)?.[1] as string
  google.next(newPerson())
  const stranger = await signIn(google, 'google', `&invite_token=${token}`)
  expect(queryOf(stranger).error_code).toBe('validation_failed')
  google.next(person)
  const user = await userOf(await signIn(google, 'google', `&invite_token=${token}`))
  expect(user).toMatchObject({ email: person.email, user_metadata: { team: 'a' } })
  expect(user.invited_at).toBeTruthy()
})

test.each([
  ['by the link of the invitation', (token: string) => `&invite_token=${token}`],
  ['without it', () => ''],
])(
  'who registered an address before it was invited has no way in once its owner joins at a provider, %s',
  async (_how, query) => {
    const person = newPerson()
    await service.post('/signup', { email: person.email, password })
    const squatted = await service.mailbox.waitFor(person.email)
    await service.post('/invite', { email: person.email }, service.admin)
    const mail = await service.mailbox.waitFor(person.email, { after: squatted })
    google.next(person)
    const joined = await signInAt(service, google, `/authorize?provider=google${query(tokenIn(mail.text))}`)
    expect(fragmentOf(joined).access_token).toBeTruthy()
    expect((await service.post('/token?grant_type=password', { email: person.email, password })).status).toBe(400)
  },
)

test.each(['signup', 'otp', 'invite', 'provider'])(
  'an account made by a provider that was only told the address is no way in once its owner has come by %s',
  async (way) => {
    const own = await service.with({ AUTH_SMTP_MAX_FREQUENCY: '1' })
    const owner = newPerson()
    const registrant = { ...newPerson(), email: owner.email, email_verified: false }
    const come = (at: OpenIdProvider, name: string, query = '') =>
      signInAt(own, at, `/authorize?provider=${name}${query}`)
    corp.next(registrant)
    expect(queryOf(await come(corp, 'corp')).error_code).toBe('provider_email_needs_verification')
    const before = await own.mailbox.waitFor(owner.email)
    own.clock.advance({ seconds: 61 })
    if (way === 'signup') await own.post('/signup', { email: owner.email, password })
    else if (way === 'otp') await own.post('/otp', { email: owner.email })
    else await own.post('/invite', { email: owner.email }, own.admin)
    const mail = await own.mailbox.waitFor(owner.email, { after: before })
    google.next(owner)
    const owners =
      way === 'provider'
        ? await come(google, 'google', `&invite_token=${tokenIn(mail.text)}`)
        : await own.get(linkPath(mail.text))
    const { access_token } = fragmentOf(owners)
    const { body } = await own.get('/user', { authorization: `Bearer ${access_token}` })
    expect([body.email, body.app_metadata.providers]).toEqual([
      owner.email,
      way === 'provider' ? ['google'] : ['email'],
    ])
    corp.next(registrant)
    expect(fragmentOf(await come(corp, 'corp'))).not.toHaveProperty('access_token')
    await own.close()
  },
)

test('after a change of AUTH_ENCRYPTION_KEY earlier attempts and codes are unknown', async () => {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  google.next(newPerson())
  const code = queryOf(await signIn(google, 'google', `&code_challenge=${challenge}&code_challenge_method=s256`)).code
  const callback = await google.visit(await begin('google'))
  const { encryption } = service.deps
  service.deps.encryption = createEncryption({
    keys: [{ id: null, secret: 'another secret of the operator' }],
  })
  expect(queryOf(await back(callback))).toMatchObject({ error: 'invalid_request', error_code: 'bad_oauth_state' })
  const exchanged = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
  expect([exchanged.status, exchanged.body.error_code]).toEqual([404, 'flow_state_not_found'])
  service.deps.encryption = encryption
})

test('a banned user and a closed sign-up are refused', async () => {
  const person = newPerson()
  google.next(person)
  const { id } = await userOf(await signIn(google, 'google'))
  await service.put(`/admin/users/${id}`, { ban_duration: '1h' }, service.admin)
  expect(queryOf(await signIn(google, 'google'))).toMatchObject({ error: 'access_denied', error_code: 'user_banned' })
  const invited = newPerson()
  const { body } = await service.post('/invite', { email: invited.email }, service.admin)
  const mail = await service.mailbox.waitFor(invited.email)
  await service.put(`/admin/users/${body.id}`, { ban_duration: '1h' }, service.admin)
  google.next(invited)
  const joining = await signIn(google, 'google', `&invite_token=${tokenIn(mail.text)}`)
  expect(queryOf(joining)).toMatchObject({ error: 'access_denied', error_code: 'user_banned' })
  const closed = await service.with({ AUTH_DISABLE_SIGNUP: 'true' })
  google.next(newPerson())
  const answer = await signInAt(closed, google, '/authorize?provider=google')
  expect(queryOf(answer)).toMatchObject({ error: 'access_denied', error_code: 'signup_disabled' })
  await closed.close()
})
