// The API of contract/auth-custom-providers.md 2 to 4. Sign-ins: ../../../../test/custom-providers.test.ts.
import type { RequestListener } from 'node:http'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { encryptionWith, newKey } from '../../../../test/encryption-keys.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../../../../test/openid-provider.ts'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { serveInTest } from '../../../../test/upstream.ts'
import { SEALED } from '../../../core/keys/sealed-columns.ts'
import { rotateSealedRows } from '../../commands/encryption/rotate.ts'

const PATH = '/admin/custom-providers'
const SECRET = 'a-client-secret-that-never-leaves'
const LOOPBACK = { AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' }

let corp: OpenIdProvider
let service: TestService
beforeAll(async () => {
  corp = await startOpenIdProvider()
  service = await startTestService({ ...LOOPBACK, ...corp.settings('OIDC_TAKEN') })
})
afterAll(async () => {
  await service.close()
  await corp.close()
})

let names = 0
const openId = () => ({
  provider_type: 'oidc',
  identifier: `custom:oidc-${++names}`,
  name: 'Corporate',
  client_id: 'our-client',
  client_secret: SECRET,
  issuer: corp.issuer,
})
const oauth2 = () => ({
  provider_type: 'oauth2',
  identifier: `custom:oauth-${++names}`,
  name: 'Forge',
  client_id: 'our-client',
  client_secret: SECRET,
  authorization_url: `${corp.issuer}/a`,
  token_url: `${corp.issuer}/t`,
  userinfo_url: `${corp.issuer}/u`,
})

const create = (provider: object, at = service) => at.post(PATH, provider, at.admin)
const put = (identifier: string, change: object, at = service) => at.put(`${PATH}/${identifier}`, change, at.admin)
const read = (identifier: string, at = service) => at.get(`${PATH}/${identifier}`, at.admin)
const refused = (msg: unknown, error_code = 'validation_failed') => ({ status: 400, body: { error_code, msg } })

test('an OpenID provider is answered with its description and defaults, and never with its secret', async () => {
  const { client_secret: _, ...given } = openId()
  const created = await create({ ...given, client_secret: SECRET, scopes: ['email'] })
  expect(created.status).toBe(201)
  expect(created.body).toEqual({
    ...given,
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    acceptable_client_ids: [],
    scopes: ['openid', 'email'],
    pkce_enabled: true,
    attribute_mapping: {},
    custom_claims_allowlist: [],
    authorization_params: {},
    enabled: true,
    listed: true,
    email_optional: false,
    linking: 'verified',
    skip_nonce_check: false,
    discovery_document: expect.objectContaining({
      issuer: corp.issuer,
      token_endpoint: `${corp.issuer}/token`,
      subject_types_supported: ['public'],
    }),
    created_at: service.clock.now().toISOString(),
    updated_at: service.clock.now().toISOString(),
  })
  for (const path of [given.identifier, given.identifier.replace(':', '%3A')]) {
    expect((await read(path)).body).toEqual(created.body)
  }
  const changed = await put(given.identifier, { name: 'Renamed', client_secret: `${SECRET}-2` })
  const listed = await service.get(`${PATH}?type=oidc`, service.admin)
  const { discovery_document: _document, ...short } = created.body
  expect(listed.body.providers).toContainEqual({ ...short, name: 'Renamed', updated_at: expect.any(String) })
  const others = (await service.get(`${PATH}?type=oauth2`, service.admin)).body.providers
  expect(others.filter(({ provider_type }: { provider_type: string }) => provider_type !== 'oauth2')).toEqual([])
  const rows = await service.deps.pool.query(
    `select custom_providers::text as text from custom_providers union all select payload::text from audit_log_entries`,
  )
  const everywhere = [created, changed, listed].map(({ text }) => text).concat(rows.rows.map(({ text }) => text))
  expect(everywhere.filter((text) => text.includes(SECRET))).toEqual([])
})

test('an OAuth 2 provider has its addresses, and nothing of OpenID', async () => {
  const { client_secret: _, ...given } = oauth2()
  const { body } = await create({ ...given, client_secret: SECRET, issuer: 'https://ignored.example' })
  expect(body).toMatchObject(given)
  expect(Object.keys(body)).not.toContain('issuer')
  expect(Object.keys(body)).not.toContain('skip_nonce_check')
  expect(Object.keys(body)).not.toContain('discovery_document')
})

describe('a new provider', () => {
  const with_ = (change: object) => () => ({ ...openId(), ...change })
  const plain = (change: object) => () => ({ ...oauth2(), ...change })
  const long = (length: number) => 'x'.repeat(length)

  test.each<[string, () => object, unknown, string?]>([
    ['another type', with_({ provider_type: 'saml' }), "provider_type must be either 'oauth2' or 'oidc'"],
    ['no type', with_({ provider_type: undefined }), "provider_type must be either 'oauth2' or 'oidc'"],
    ['no identifier', with_({ identifier: '' }), 'identifier is required'],
    ['no prefix', with_({ identifier: 'corp' }), "identifier must start with 'custom:' prefix, e.g. 'custom:corp'"],
    ['capitals', with_({ identifier: 'custom:Corp' }), expect.stringContaining('identifier must be custom:')],
    ['a dash at the end', with_({ identifier: 'custom:a-' }), expect.stringContaining('identifier must be')],
    ['a long identifier', with_({ identifier: `custom:${long(44)}` }), expect.stringContaining('identifier must be')],
    ['no name', with_({ name: undefined }), 'name is required'],
    ['a long name', with_({ name: long(101) }), 'name must be at most 100 characters long'],
    ['no client', with_({ client_id: '' }), 'client_id is required'],
    ['a long client', with_({ client_id: long(513) }), 'client_id must be at most 512 characters long'],
    [
      'neither secret nor PKCE',
      with_({ client_secret: '', pkce_enabled: false }),
      'client_secret is required while pkce_enabled is false',
    ],
    ['no issuer', with_({ issuer: undefined }), 'issuer is required for OIDC providers'],
    ['no page', plain({ authorization_url: '' }), 'authorization_url is required for OAuth2 providers'],
    ['no token address', plain({ token_url: undefined }), 'token_url is required for OAuth2 providers'],
    ['no profile', plain({ userinfo_url: undefined }), 'userinfo_url is required for OAuth2 providers'],
    ...['client_id', 'client_secret', 'redirect_uri', 'response_type', 'state', 'code_challenge', 'nonce'].map(
      (name): [string, () => object, string] => [
        `a parameter ${name}`,
        with_({ authorization_params: { [name]: 'x' } }),
        `Cannot override reserved OAuth parameter: ${name}`,
      ],
    ),
    ['a number', with_({ authorization_params: { a: 1 } }), 'Authorization parameter "a" must be a string'],
    ...['id', 'aud', 'role', 'app_metadata', 'email_verified', 'banned_until', 'is_super_admin'].map(
      (name): [string, () => object, string] => [
        `a mapping of ${name}`,
        with_({ attribute_mapping: { [name]: 'x' } }),
        `Cannot map to protected system field: ${name}`,
      ],
    ),
    ...['sub', 'email'].flatMap((name) =>
      [1, true, null, ['x'], { a: 'x' }].map((constant): [string, () => object, string] => [
        `the constant ${JSON.stringify(constant)} as ${name}`,
        plain({ attribute_mapping: { [name]: constant } }),
        `attribute_mapping of ${name} must name a claim`,
      ]),
    ),
    [
      'an empty claim',
      with_({ custom_claims_allowlist: ['a', ''] }),
      'custom_claims_allowlist entries must be non-empty strings',
    ],
    ['a scope that is no text', with_({ scopes: [1] }), 'scopes entries must be non-empty strings'],
    ['too many scopes', with_({ scopes: Array(101).fill('a') }), expect.stringContaining('at most 100')],
    ['another linking', with_({ linking: 'always' }), expect.stringContaining('linking must be verified')],
    ['a name that settings have', with_({ identifier: 'custom:taken' }), expect.stringContaining('exists'), 'conflict'],
    ['a wrong type', with_({ enabled: 'yes' }), expect.stringContaining('enabled'), 'bad_json'],
  ])('with %s is refused', async (_, provider, message, code) => {
    expect(await create(provider())).toMatchObject(refused(message, code))
  })

  test('fails by its first mistake in the documented order', async () => {
    const taken = openId()
    await create(taken)
    const full = await service.with({ AUTH_CUSTOM_OAUTH_MAX_PROVIDERS: '1' })
    const mistakes: [object, string][] = [
      [{ provider_type: 'x' }, 'provider_type must'],
      [{ identifier: 'x' }, 'identifier must start'],
      [{ name: '' }, 'name is'],
      [{ client_id: '' }, 'client_id is'],
      [{ issuer: '' }, 'issuer is'],
      [{ authorization_params: { state: 'x' } }, 'Cannot override'],
      [{ attribute_mapping: { id: 'x' } }, 'Cannot map'],
      [{ custom_claims_allowlist: [''] }, 'custom_claims_allowlist'],
      [{}, 'Maximum number'],
    ]
    const all = { ...taken, issuer: 'ftp://nowhere', discovery_url: 'https://192.168.0.1/x' }
    for (const [at, [, message]] of mistakes.entries()) {
      const wrong = Object.assign({}, all, ...mistakes.slice(at).map(([mistake]) => mistake))
      expect((await create(wrong, full)).body.msg).toContain(message)
    }
    expect((await create(all)).body.msg).toContain('issuer: URL must use HTTPS')
    const conflict = refused('A custom OAuth provider with this identifier already exists', 'conflict')
    expect(await create({ ...taken, issuer: `${corp.issuer}/other` })).toMatchObject(conflict)
  })
})

test('the list is whole, or by pages with their total', async () => {
  const given = [await create(oauth2()), await create(oauth2())].map(({ body }) => body.identifier)
  const list = async (query: string) => {
    const { status, headers, body } = await service.get(`${PATH}?type=oauth2&${query}`, service.admin)
    return { status, total: Number(headers['x-total-count']), names: body.providers?.map(identifierOf) }
  }
  const identifierOf = ({ identifier }: { identifier: string }) => identifier
  const whole = await list('page=&per_page=')
  expect(whole.names).toEqual(expect.arrayContaining(given))
  expect(whole.total).toBe(whole.names.length)
  expect(await list('page=2&per_page=1')).toEqual({ ...whole, names: whole.names.slice(1, 2) })
  expect(await list('page=1000')).toEqual({ ...whole, names: [] })
  for (const query of ['page=-1', 'per_page=0', 'page=x']) expect((await list(query)).status).toBe(400)
})

test('of two that race for one name or the last room, one is added', async () => {
  const twin = openId()
  const both = await Promise.all([create(twin), create(twin)])
  expect(both.map(({ status }) => status).toSorted()).toEqual([201, 400])
  const count = (await service.get(PATH, service.admin)).body.providers.length
  const full = await service.with({ AUTH_CUSTOM_OAUTH_MAX_PROVIDERS: String(count + 1) })
  const racing = await Promise.all([create(oauth2(), full), create(oauth2(), full)])
  expect(racing.map(({ body }) => body.error_code).toSorted()).toEqual(['over_custom_provider_quota', undefined])
})

test.each(['constructor', 'toString', 'hasOwnProperty', 'other'])('a member %s of a body is ignored', async (name) => {
  const created = await create({ ...oauth2(), [name]: 'x' })
  expect(created.status).toBe(201)
  expect(await put(created.body.identifier, { [name]: 'x' })).toMatchObject({ status: 200, body: created.body })
})

describe('a change', () => {
  test('replaces what is given and not empty, and the audit log names these fields', async () => {
    const { identifier } = (await create({ ...openId(), scopes: ['a'], discovery_url: discoveryOf(corp) })).body
    const change = {
      ...{ name: '', client_secret: '', provider_type: 'oauth2', identifier: 'custom:other', jwks_uri: null },
      ...{ id: 'x', version: 9, sealed_secret: 'x', discovery_document: {}, created_at: 'x', unknown: 1 },
      ...{ scopes: [], attribute_mapping: { user_name: 'login' }, enabled: false, listed: false, linking: 'never' },
    }
    expect(await put(identifier, change)).toMatchObject({
      status: 200,
      body: {
        ...{ identifier, provider_type: 'oidc', name: 'Corporate', scopes: ['openid'], enabled: false },
        ...{ discovery_url: discoveryOf(corp), attribute_mapping: { user_name: 'login' }, linking: 'never' },
      },
    })
    expect((await put(identifier, { discovery_url: '' })).body.discovery_url).toBe(discoveryOf(corp))
    expect(Object.keys((await put(identifier, { discovery_url: null })).body)).not.toContain('discovery_url')
    const { rows } = await service.deps.pool.query(
      `select payload from audit_log_entries where payload #>> '{traits,provider}' = $1 order by created_at, id`,
      [identifier],
    )
    expect(
      rows.map(({ payload: { action, traits, actor_username } }) => [action, actor_username, traits.fields]),
    ).toEqual([
      ['custom_provider_created', 'service_role', expect.arrayContaining(['client_secret', 'scopes'])],
      ['custom_provider_updated', 'service_role', ['scopes', 'attribute_mapping', 'enabled', 'listed', 'linking']],
      ['custom_provider_updated', 'service_role', ['discovery_url']],
    ])
  })

  test('of an issuer fetches its description; a bad one leaves all as it was', async () => {
    const other = await startOpenIdProvider()
    onTestFinished(() => other.close())
    const created = (await create(openId())).body
    const moved = await put(created.identifier, { issuer: other.issuer })
    expect(moved.body.discovery_document.token_endpoint).toBe(`${other.issuer}/token`)
    expect(await put(created.identifier, { issuer: `${corp.issuer}/none`, name: 'Lost' })).toMatchObject(
      refused(expect.stringContaining('failed: the status is 404')),
    )
    expect((await read(created.identifier)).body).toEqual(moved.body)
  })

  test('takes the secret away only of a provider with PKCE', async () => {
    const { identifier } = (await create(openId())).body
    expect((await put(identifier, { client_secret: null })).status).toBe(200)
    expect((await put(identifier, { pkce_enabled: false })).body.msg).toContain('client_secret is required')
    expect((await put(identifier, { pkce_enabled: false, client_secret: SECRET })).status).toBe(200)
  })

  /** An issuer whose description is answered once the given work is done. */
  async function issuerWhile(work: () => Promise<unknown>) {
    const issuer = await serveInTest(async (_request, response) => {
      await work()
      const [authorization_endpoint, token_endpoint, jwks_uri] = ['a', 't', 'k'].map((name) => `${issuer}/${name}`)
      response.end(JSON.stringify({ issuer, authorization_endpoint, token_endpoint, jwks_uri }))
    })
    return issuer
  }

  test('that meets another one loses nothing of either', async () => {
    const { identifier } = (await create(openId())).body
    const replica = await service.with({})
    const answers: number[] = []
    const issuer = await issuerWhile(async () => {
      if (answers.length === 0) answers.push((await put(identifier, { scopes: ['user'] }, replica)).status)
    })
    answers.push((await put(identifier, { issuer })).status)
    expect(answers).toEqual([200, 200])
    expect((await read(identifier)).body).toMatchObject({ issuer, scopes: ['openid', 'user'] })
  })

  test('leaves a secret under the key to which a rotation moved it meanwhile', async () => {
    const { identifier } = (await create(openId())).body
    const { db } = service.deps
    const encryption = encryptionWith(newKey('moved'))
    const issuer = await issuerWhile(() => rotateSealedRows({ db, encryption }))
    expect((await put(identifier, { issuer })).status).toBe(200)
    const row = await db
      .selectFrom('custom_providers')
      .select(['id', 'sealed_secret'])
      .where('identifier', '=', identifier)
      .executeTakeFirstOrThrow()
    expect(row.sealed_secret?.startsWith(encryption.prefix)).toBe(true)
    expect(encryption.open(SEALED.clientSecret, row)).toBe(SECRET)
  })

  test('without a difference writes nothing, and members of no use reach no audit entry', async () => {
    const useless = { ['x'.repeat(2000)]: 1, constructor: 'x', toString: 'x', token_url: 'https://8.8.8.8/t' }
    const { identifier, updated_at } = (await create({ ...openId(), ...useless })).body
    service.clock.advance({ seconds: 1 })
    const same = { name: 'Corporate', issuer: corp.issuer, scopes: ['openid'], enabled: true, jwks_uri: null }
    expect(await put(identifier, { ...useless, ...same })).toMatchObject({ status: 200, body: { updated_at } })
    const { rows } = await service.deps.pool.query(
      `select payload #> '{traits,fields}' as fields from audit_log_entries
        where payload #>> '{traits,provider}' = $1`,
      [identifier],
    )
    expect(rows.map(({ fields }) => fields.toSorted())).toEqual([
      ['client_id', 'client_secret', 'identifier', 'issuer', 'name', 'provider_type'],
    ])
  })
})

test('an unknown identifier is not found, one without the prefix is refused, and a deleted one is gone', async () => {
  const { identifier } = (await create(oauth2())).body
  const remove = (name: string) => service.delete(`${PATH}/${name}`, service.admin)
  expect((await remove(identifier)).status).toBe(204)
  const missing = {
    status: 404,
    body: { error_code: 'custom_provider_not_found', msg: 'Custom OAuth provider not found' },
  }
  for (const name of [identifier, 'custom:%00', 'custom:a%00b', 'custom:Corp', 'custom:', `custom:${'x'.repeat(44)}`]) {
    for (const answer of [await read(name), await put(name, { name: 'x' }), await remove(name)]) {
      expect(answer).toMatchObject(missing)
    }
  }
  for (const answer of [await read('corp'), await put('corp', {}), await remove('corp')]) {
    expect(answer).toMatchObject(refused("identifier must start with 'custom:' prefix, e.g. 'custom:corp'"))
  }
  const filtered = await service.get(`${PATH}?type=saml`, service.admin)
  expect(filtered).toMatchObject(refused("type must be either 'oauth2' or 'oidc'"))
})

test('switched off, all of it is disabled; without an admin token it is refused first', async () => {
  const off = await service.with({ AUTH_CUSTOM_OAUTH_ENABLED: 'false' })
  const disabled = { status: 404, body: { msg: 'Custom OAuth providers are disabled', error_code: 'feature_disabled' } }
  for (const answer of [await create({}, off), await read('custom:x', off), await put('custom:x', {}, off)]) {
    expect(answer).toMatchObject(disabled)
  }
  expect((await off.get(PATH)).status).toBe(401)
  expect((await service.get(PATH, (await service.signedIn()).auth)).status).toBe(403)
})

describe('addresses', () => {
  const PRIVATE = 'URL cannot resolve to private network addresses'
  const LOCAL = 'URL cannot point to localhost or loopback addresses'
  let strict: TestService
  beforeAll(async () => {
    strict = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '' })
  })

  test.each([
    ['http://login.example.com', 'URL must use HTTPS'],
    ['ftp://login.example.com', 'URL must use HTTPS'],
    ['not a URL', 'URL is not valid, or longer than 2048 characters'],
    [`https://login.example.com/${'x'.repeat(2048)}`, 'URL is not valid, or longer than 2048 characters'],
    ['https://user:word@login.example.com', 'URL must not contain a user name or password'],
    ['https://localhost', LOCAL],
    ['https://a.localhost:8443', LOCAL],
    ['https://127.0.0.1', LOCAL],
    ['https://2130706433', LOCAL],
    ['https://0177.0.0.1', LOCAL],
    ['https://0x7f000001', LOCAL],
    ['https://[::1]', LOCAL],
    ['https://[::ffff:127.0.0.1]', PRIVATE],
    ['https://10.0.0.1', PRIVATE],
    ['https://192.168.1.1:8443', PRIVATE],
    ['https://169.254.169.254', PRIVATE],
    ['https://[::ffff:169.254.169.254]', PRIVATE],
    ['https://[fd00::1]', PRIVATE],
    ['https://224.0.0.1', PRIVATE],
    ['https://0.0.0.0', PRIVATE],
    ['https://vault.internal', PRIVATE],
    ['https://no-such-name.invalid', 'Unable to resolve hostname'],
  ])('%s is refused', async (address, problem) => {
    const field = `token_url: ${problem}`
    const public_ = { authorization_url: 'https://8.8.8.8/a', userinfo_url: 'https://8.8.8.8/u' }
    expect(await create({ ...oauth2(), ...public_, token_url: address }, strict)).toMatchObject(refused(field))
    expect((await create({ ...openId(), issuer: address }, strict)).body.msg).toBe(`issuer: ${problem}`)
  })

  test('networks of AUTH_EGRESS_DENY_CIDRS are refused, whatever else is permitted', async () => {
    const denying = await service.with({ AUTH_EGRESS_DENY_CIDRS: '127.0.0.1/32' })
    expect(await create(oauth2(), denying)).toMatchObject(refused(`authorization_url: ${LOCAL}`))
  })

  test('every other field is held to the same', async () => {
    const inside = 'https://10.0.0.1/x'
    const fine = {
      authorization_url: 'https://8.8.8.8/a',
      token_url: 'https://8.8.8.8/t',
      userinfo_url: 'https://8.8.8.8/u',
    }
    for (const field of ['authorization_url', 'userinfo_url', 'jwks_uri']) {
      const answer = await create({ ...oauth2(), ...fine, [field]: inside }, strict)
      expect(answer).toMatchObject(refused(`${field}: ${PRIVATE}`))
    }
    const described = { ...openId(), issuer: 'https://8.8.8.8', discovery_url: inside }
    expect(await create(described, strict)).toMatchObject(refused(`discovery_url: ${PRIVATE}`))
    const known = (await create({ ...oauth2(), ...fine }, strict)).body
    expect(await put(known.identifier, { token_url: inside }, strict)).toMatchObject(refused(`token_url: ${PRIVATE}`))
  })
})

describe('a description', () => {
  /** A provider whose description is what the test says. */
  async function describedBy(answer: (issuer: string) => RequestListener) {
    const issuer = await serveInTest((request, response) => listener(request, response))
    const listener = answer(issuer)
    const created = await create({ ...openId(), issuer })
    return { issuer, msg: String(created.body.msg), status: created.status, document: created.body.discovery_document }
  }
  const documentOf = (issuer: string, change: object = {}) => ({
    issuer,
    authorization_endpoint: `${issuer}/a`,
    token_endpoint: `${issuer}/t`,
    jwks_uri: `${issuer}/k`,
    ...change,
  })
  const json =
    (change: object): ((issuer: string) => RequestListener) =>
    (issuer) =>
    (_request, response) =>
      response.end(JSON.stringify(documentOf(issuer, change)))

  test.each<[string, (issuer: string) => RequestListener, string]>([
    ['lies about its issuer', json({ issuer: 'https://accounts.example.com' }), 'is "https://accounts.example.com"'],
    ['has the issuer with a slash', (issuer) => json({ issuer: `${issuer}/` })(issuer), 'the issuer is'],
    ['lacks fields', json({ token_endpoint: undefined, jwks_uri: '' }), 'required fields: token_endpoint, jwks_uri'],
    ['has NUL in an address', (issuer) => json({ token_endpoint: `${issuer}/\0` })(issuer), 'fields: token_endpoint'],
    ['has a half character', json({ jwks_uri: 'https://a.example/\ud800' }), 'required fields: jwks_uri'],
    ['has a number as address', json({ token_endpoint: 1 }), 'required fields: token_endpoint'],
    ['names a private token address', json({ token_endpoint: 'https://10.0.0.1/t' }), 'token_endpoint: URL cannot'],
    ['names a private profile', json({ userinfo_endpoint: 'https://[fd00::1]/u' }), 'userinfo_endpoint: URL cannot'],
    ['names private keys', json({ jwks_uri: 'https://169.254.169.254/k' }), 'jwks_uri: URL cannot'],
    ['names a script as page', json({ authorization_endpoint: 'javascript:alert(1)' }), 'authorization_endpoint: URL'],
    ['is a list', () => (_, response) => response.end('[]'), 'the answer is no JSON object'],
    ['is a page', () => (_, response) => response.end('<html>'), 'the answer is no JSON object'],
    ['is missing', () => (_, response) => response.writeHead(404).end(), 'the status is 404'],
    [
      'redirects into the network',
      () => (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(),
      'the status is 302, and redirects are not followed',
    ],
    [
      'never ends',
      () => (_, response) => {
        const more = () => {
          while (response.write('{"a":'.repeat(1000)));
        }
        response.on('drain', more)
        more()
      },
      'the answer is larger than 1048576 bytes',
    ],
    ['breaks off', () => (_, response) => response.write('{', () => response.destroy()), 'failed: '],
  ])('that %s is refused', async (_, answer, problem) => {
    const { issuer, msg, status } = await describedBy(answer)
    expect(status).toBe(400)
    expect(msg).toContain(problem)
    if (problem.startsWith('the ')) {
      expect(msg).toContain(`OIDC discovery from "${issuer}/.well-known/openid-configuration" failed`)
    }
  })

  test('keeps what is known of it, and nothing else', async () => {
    const given = { claims_supported: ['x'], scopes_supported: ['a', 1, 'a\0', '\ud800', 'b'], extra: SECRET }
    const { issuer, document } = await describedBy(json(given))
    expect(document).toEqual(documentOf(issuer, { scopes_supported: ['a', 'b'] }))
  })

  test('of 800 KB leaves some kilobytes in the row', async () => {
    const entries = (length: number) => Array.from({ length: 100 }, (_, at) => String(at).padEnd(length, 'x'))
    const { document } = await describedBy(
      json({
        ...{ scopes_supported: ['openid', 'e'.repeat(101)], response_types_supported: entries(100) },
        ...{ grant_types_supported: entries(2000), subject_types_supported: entries(100) },
      }),
    )
    expect(document).toMatchObject({ scopes_supported: ['openid'], grant_types_supported: [] })
    expect(JSON.stringify(document).length).toBeLessThan(5_000)
  })
})

const discoveryOf = ({ issuer }: OpenIdProvider) => `${issuer}/.well-known/openid-configuration`
