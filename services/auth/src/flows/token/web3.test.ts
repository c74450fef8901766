import { base58 } from '@scure/base'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { importLines } from '../../../test/import-lines.ts'
import { startTestService, type TestService } from '../../../test/service.ts'
import {
  ethereumSignature,
  ethereumWallet,
  type Given,
  signAsLedger,
  solanaWallet,
  type Wallet,
  withHighS,
} from '../../../test/wallets.ts'
import { deleteExpired } from '../../housekeeping.ts'

const BOTH = { AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true', AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'true' }

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    ...BOTH,
    AUTH_URI_ALLOW_LIST: 'http://localhost:3000/**,https://app.example/**,https://lone.example/page',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  })
})
afterAll(() => service.close())

const grant = (body: object, headers = {}, at = service) => at.post('/token?grant_type=web3', body, headers)
const signIn = (wallet: Wallet, given?: Given, headers = {}, at = service) =>
  grant(wallet.body(service.clock.now(), given), headers, at)

const refused = (description: string) => ({
  status: 400,
  body: {
    ...{ error: 'invalid_grant', error_description: description },
    ...{ error_code: 'invalid_credentials', msg: description },
  },
})
const malformed = (msg: string) => ({ status: 400, body: { error_code: 'validation_failed', msg } })
const USED = refused('message was already used')
const MISMATCH = refused('Signature does not match address in message')

const wallets = { ethereum: ethereumWallet, solana: solanaWallet }
const titles = { ethereum: 'Ethereum', solana: 'Solana' } as const
const after = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1000)
const amrOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).amr

describe.each(['ethereum', 'solana'] as const)('a message signed by a wallet of %s', (chain) => {
  const title = titles[chain]
  const wallet = () => wallets[chain]()

  test('gives a session, and again the same user', async () => {
    const own = wallet()
    const first = await signIn(own, { statement: 'Sign in to Acme.' })
    expect(first).toMatchObject({
      status: 200,
      body: {
        user: {
          email: '',
          is_anonymous: false,
          app_metadata: { provider: 'web3', providers: ['web3'] },
          identities: [{ provider: 'web3', id: `web3:${chain}:${own.address}` }],
        },
      },
    })
    expect(first.body.user.identities[0].identity_data).toEqual({
      sub: `web3:${chain}:${own.address}`,
      provider_id: `web3:${chain}:${own.address}`,
      email_verified: false,
      phone_verified: false,
      custom_claims: {
        ...{ address: own.address, chain, network: chain === 'ethereum' ? '1' : '', domain: 'site.example' },
        statement: 'Sign in to Acme.',
      },
    })
    expect(amrOf(first.body.access_token)).toMatchObject([{ method: 'web3' }])
    service.clock.advance({ seconds: 1 })
    const again = await signIn(own)
    expect(again.body.user.id).toBe(first.body.user.id)
    expect(again.body.session_id).toBe(first.body.session_id)
  })

  test('gives one session when it is sent twice, later or at once at two replicas', async () => {
    const replica = await service.with({})
    const body = wallet().body(service.clock.now())
    const both = await Promise.all([grant(body), grant(body, {}, replica)])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 400])
    expect(both.find(({ status }) => status === 400)).toMatchObject(USED)
    const known = both.find(({ status }) => status === 200)?.body.user.id
    expect(await grant(body, {}, replica)).toMatchObject(USED)
    const { rows } = await service.deps.pool.query('select 1 from sessions where user_id = $1', [known])
    expect(rows).toHaveLength(1)
    await replica.close()
  })

  test('is refused by the table of the contract', async () => {
    const own = wallet()
    const signed = `Signed ${title} message`
    const wrong = `${signed} is using a Domain that does not match the one in URI which is not allowed on this server`
    const foreign = `${signed} is using URI which is not allowed on this server, message was signed for another app`
    const table: [Given, string][] = [
      [{ uri: 'http://site.example/' }, `${signed} is using URI which does not use HTTPS`],
      [{ uri: 'app://localhost/' }, `${signed} is using URI which does not use HTTPS`],
      [{ uri: 'https://evil.example/', domain: 'evil.example' }, foreign],
      [{ uri: 'https://site.example/', domain: 'evil.example' }, wrong],
      [{ uri: 'https://site.example:8443/' }, wrong],
      [{ uri: 'https://lone.example/page', domain: 'lone.example' }, wrong],
      // A page of strangers whose visitors sign the address of a developer's machine.
      [{ uri: 'http://localhost:3000/', domain: 'evil.example' }, wrong],
      [{ more: [`Not Before: ${after(30).toISOString()}`] }, `${signed} becomes valid in the future`],
      [{ issuedAt: after(-60), more: [`Expiration Time: ${after(-1).toISOString()}`] }, `${signed} is expired`],
      [{ issuedAt: after(-601) }, `${title} message was issued too long ago`],
      [{ issuedAt: after(601) }, `${title} message was issued too far in the future`],
    ]
    const answers = []
    for (const [given] of table) answers.push(await signIn(own, given))
    expect(answers).toMatchObject(table.map(([, description]) => refused(description)))
    const { rows } = await service.deps.pool.query('select 1 from identities where provider_id like $1', [
      `%${own.address}`,
    ])
    expect(rows).toEqual([])
  })

  test('is accepted at the ends of its time, for another application and in development', async () => {
    const table: Given[] = [
      { issuedAt: after(-600) },
      { issuedAt: after(600) },
      { more: [`Not Before: ${service.clock.now().toISOString()}`, `Expiration Time: ${after(1).toISOString()}`] },
      { uri: 'https://app.example/deep/page?x=1', domain: 'app.example' },
      { uri: 'https://app.example/', domain: 'App.Example:443' },
      { uri: 'http://localhost:3000/x', domain: 'localhost:3000' },
      { more: ['Resources:', '- https://a.example/', '- ipfs://b', 'Request ID: 7', 'Unknown: yes'] },
    ]
    for (const given of table) expect(await signIn(wallet(), given)).toMatchObject({ status: 200 })
  })

  test("needs the signature of its address's key over exactly its text", async () => {
    const [own, other] = [wallet(), wallet()]
    const { message, ...rest } = own.body(service.clock.now())
    expect(await grant({ ...rest, message: message.replace('Version', 'version') })).toMatchObject({ status: 400 })
    expect(await grant({ ...rest, message: `${message}\nNonce: 1` })).toMatchObject(MISMATCH)
    expect(await grant({ ...rest, message, signature: other.sign(message) })).toMatchObject(MISMATCH)
    expect(await signIn(own, { address: other.address })).toMatchObject(MISMATCH)
    expect(await grant({ ...rest, message })).toMatchObject({ status: 200 })
  })

  test('is linked to the signed-in caller on request, and to one user', async () => {
    const { auth, userId } = await service.signedIn()
    const own = wallet()
    const unsigned = await grant({ ...own.body(service.clock.now()), link_identity: true })
    expect(unsigned.body.error_code).toBe('no_authorization')
    const linked = await grant({ ...own.body(service.clock.now()), link_identity: true }, auth)
    expect(linked.body.user).toMatchObject({ id: userId, app_metadata: { providers: ['email', 'web3'] } })
    expect((await signIn(own, { statement: 'later' })).body.user.id).toBe(userId)
    const { auth: stranger } = await service.signedIn()
    const taken = await grant(
      { ...own.body(service.clock.now(), { statement: 'mine' }), link_identity: true },
      stranger,
    )
    expect([taken.status, taken.body.error_code]).toEqual([422, 'identity_already_exists'])
    const closed = await service.with({ AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'false' })
    const body = { ...wallet().body(service.clock.now()), link_identity: true }
    expect((await grant(body, auth, closed)).body.error_code).toBe('manual_linking_disabled')
    await closed.close()
  })

  test('makes an anonymous user a permanent one, and unlinking ends the sessions it began', async () => {
    const anonymous = await service.post('/signup', {})
    const auth = { authorization: `Bearer ${anonymous.body.access_token}` }
    const own = wallet()
    const linked = await grant({ ...own.body(service.clock.now()), link_identity: true }, auth)
    expect(linked.body.user).toMatchObject({ id: anonymous.body.user.id, is_anonymous: false })
    const { auth: owner } = await service.signedIn()
    const second = wallet()
    const begun = await grant({ ...second.body(service.clock.now()), link_identity: true }, owner)
    const { identity_id: id } = begun.body.user.identities.find(
      ({ provider }: { provider: string }) => provider === 'web3',
    )
    expect((await service.delete(`/user/identities/${id}`, owner)).status).toBe(200)
    const refresh = { refresh_token: begun.body.refresh_token }
    expect((await service.post('/token?grant_type=refresh_token', refresh)).status).toBe(400)
    expect((await signIn(second, { statement: 'again' })).body.user.id).not.toBe(begun.body.user.id)
  })

  test('obeys bans and DISABLE_SIGNUP, and a refused one can be sent again', async () => {
    const own = wallet()
    const closed = await service.with({ AUTH_DISABLE_SIGNUP: 'true' })
    const body = own.body(service.clock.now())
    expect(await grant(body, {}, closed)).toMatchObject({ status: 422, body: { error_code: 'signup_disabled' } })
    const { body: session } = await grant(body)
    expect((await signIn(own, { statement: 'known' }, {}, closed)).status).toBe(200)
    await closed.close()
    await service.put(`/admin/users/${session.user.id}`, { ban_duration: '1h' }, service.admin)
    expect(await signIn(own, { statement: 'banned' })).toMatchObject({
      status: 403,
      body: { error_code: 'user_banned' },
    })
  })

  test('is in the audit log with its wallet, which the deletion of its user erases there, too', async () => {
    const own = wallet()
    const { body } = await signIn(own)
    const traitsOfSignIn = async () => {
      const { rows } = await service.deps.pool.query(
        `select payload -> 'traits' as traits from audit_log_entries
          where payload ->> 'action' = 'login' and payload ->> 'actor_id' = $1`,
        [body.user.id],
      )
      return rows.map(({ traits }) => traits)
    }
    const kept = { provider: 'web3', chain, network: chain === 'ethereum' ? '1' : '', domain: 'site.example' }
    expect(await traitsOfSignIn()).toEqual([{ ...kept, address: own.address, uri: 'https://site.example/sign-in' }])
    expect((await service.delete(`/admin/users/${body.user.id}`, service.admin)).status).toBe(200)
    const left = await service.deps.pool.query(`select 1 from identities where provider_id like '%' || $1`, [
      own.address,
    ])
    expect(left.rows).toEqual([])
    service.clock.advance({ seconds: 2 * 86_400 })
    expect((await signIn(own)).body.user.id).not.toBe(body.user.id)
    const erasing = await service.with({ AUTH_AUDIT_PII_RETENTION: '24h' })
    await deleteExpired(erasing.deps, erasing.deps.log, {})
    expect(await traitsOfSignIn()).toEqual([kept])
    await erasing.close()
  })
})

describe('a nonce of GET /web3/nonce', () => {
  let strict: TestService
  beforeAll(async () => {
    strict = await service.with({ AUTH_WEB3_REQUIRE_NONCE: 'true' })
  })
  afterAll(() => strict.close())
  const nonce = async (): Promise<string> => (await strict.get('/web3/nonce')).body.nonce

  test('is required where the switch is set, lasts ten minutes and signs in once at all replicas', async () => {
    const without = refused('Signed Ethereum message has no nonce of this server, or an expired one')
    expect(await signIn(ethereumWallet(), {}, {}, strict)).toMatchObject(without)
    const made = await nonce()
    for (const wrong of [
      '0'.repeat(made.length),
      `${made.slice(0, -1)}${made.endsWith('0') ? '1' : '0'}`,
      made.toUpperCase(),
    ]) {
      if (wrong === made) continue
      expect(await signIn(ethereumWallet(), { more: [`Nonce: ${wrong}`] }, {}, strict)).toMatchObject(without)
    }
    const uses = [ethereumWallet(), ethereumWallet()].map((wallet) =>
      signIn(wallet, { more: [`Nonce: ${made}`] }, {}, strict),
    )
    const answers = await Promise.all(uses)
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
    expect(answers.find(({ status }) => status === 400)).toMatchObject(USED)
    const { body } = await strict.get('/web3/nonce')
    const lifetime = body.expires_at - Math.floor(service.clock.now().getTime() / 1000)
    expect(lifetime).toBe(600)
    service.clock.advance({ seconds: 600 })
    expect(await signIn(ethereumWallet(), { more: [`Nonce: ${body.nonce}`] }, {}, strict)).toMatchObject(without)
  })

  test('is not stored before its use', async () => {
    const count = async () => (await service.deps.pool.query('select count(*) from used_web3_messages')).rows[0].count
    const before = await count()
    for (let i = 0; i < 5; i++) await nonce()
    expect(await count()).toBe(before)
  })
})

test('capitals of an Ethereum address make no other account, imported ones neither; those of Solana do', async () => {
  const own = ethereumWallet()
  const capitals = `0x${own.address.slice(2).toUpperCase()}`
  const { body } = await signIn(own, { address: capitals })
  expect(body.user.identities[0].id).toBe(`web3:ethereum:${own.address}`)
  expect((await signIn(own)).body.user.id).toBe(body.user.id)

  const old = ethereumWallet()
  const provider_id = `web3:ethereum:0x${old.address.slice(2).toUpperCase()}`
  const id = crypto.randomUUID()
  await importLines(service, [{ id, identities: [{ provider: 'web3', provider_id, identity_data: {} }] }])
  const again = await signIn(old)
  expect(again.body.user).toMatchObject({ id, identities: [{ id: provider_id }] })
  const linked = { ...old.body(service.clock.now(), { statement: 'link' }), link_identity: true }
  const { auth } = await service.signedIn()
  expect((await grant(linked, auth)).body.error_code).toBe('identity_already_exists')
})

test('signatures of Ethereum: both forms of s and of the last byte, with and without 0x', async () => {
  const own = ethereumWallet()
  for (const form of [
    (message: string) => ethereumSignature(own.parts(message), own.parts(message).recovery),
    (message: string) => ethereumSignature(withHighS(own.parts(message))),
    (message: string) => ethereumSignature(own.parts(message)).slice(2).toUpperCase(),
  ]) {
    service.clock.advance({ seconds: 1 })
    const message = own.message(service.clock.now())
    expect(await grant({ chain: 'ethereum', message, signature: form(message) })).toMatchObject({ status: 200 })
    // One message in another form is no new one.
    expect(await grant({ chain: 'ethereum', message, signature: own.sign(message) })).toMatchObject(USED)
  }
})

test('signatures of Solana: either alphabet, and the form that hardware wallets sign', async () => {
  const own = solanaWallet()
  const text = (statement: string) => own.message(service.clock.now(), { statement })
  const padded = (message: string) => Buffer.from(own.sign(message), 'base64url').toString('base64')
  const ledger = (message: string) => signAsLedger(own, message, 'site.example')
  for (const [index, form] of [padded, ledger].entries()) {
    const message = text(`form ${index}`)
    expect(await grant({ chain: 'solana', message, signature: form(message) })).toMatchObject({ status: 200 })
  }
  const message = text('of another domain')
  const signature = signAsLedger(own, message, 'evil.example')
  expect(await grant({ chain: 'solana', message, signature })).toMatchObject(MISMATCH)
})

test('signatures that no key can have made are refused, whatever is wrong with them', async () => {
  const own = ethereumWallet()
  const message = own.message(service.clock.now())
  const { r, s, recovery } = own.parts(message)
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const tooLarge = 2n ** 256n - 1n
  const signatures = [
    ethereumSignature({ r, s, recovery }, 29),
    ethereumSignature({ r, s, recovery }, 255),
    ethereumSignature({ r: 0n, s, recovery }),
    ethereumSignature({ r, s: 0n, recovery }),
    ethereumSignature({ r: order, s, recovery }),
    ethereumSignature({ r, s: order, recovery }),
    ethereumSignature({ r: tooLarge, s: tooLarge, recovery }),
    // 5 is the x of no point.
    ethereumSignature({ r: 5n, s, recovery }),
  ]
  for (const signature of signatures) {
    expect(await grant({ chain: 'ethereum', message, signature })).toMatchObject(MISMATCH)
  }
  const other = solanaWallet()
  const zeros = Buffer.alloc(64).toString('base64url')
  // All keys of small order, whose signatures would fit any message, and one that is no point of the curve.
  const half = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03'
  const otherHalf = '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc'
  const keys = [
    ...[hexKey('01'), hexKey(''), hexKey('', '80'), `ec${'f'.repeat(60)}7f`, `02${'0'.repeat(62)}`],
    ...[`${half}7a`, `${half}fa`, `${otherHalf}05`, `${otherHalf}85`],
  ]
  const identity = Buffer.concat([Buffer.from([1]), Buffer.alloc(63)]).toString('base64url')
  const addresses = keys.map((hex) => base58.encode(Buffer.from(hex, 'hex')))
  for (const address of [...addresses, `${'1'.repeat(31)}22`, 'z'.repeat(44)]) {
    const text = other.message(service.clock.now(), { address })
    for (const signature of [zeros, identity, other.sign(text)]) {
      expect(await grant({ chain: 'solana', message: text, signature })).toMatchObject(MISMATCH)
    }
  }
})

const hexKey = (first: string, last = '00') => first.padEnd(62, '0') + last

test.for<[object, object]>([
  [{}, { body: { error_code: 'web3_unsupported_chain', msg: 'Unsupported chain, must be ethereum or solana' } }],
  [{ chain: 'bitcoin' }, { status: 400, body: { error_code: 'web3_unsupported_chain' } }],
  [{ chain: '__proto__' }, { status: 400, body: { error_code: 'web3_unsupported_chain' } }],
  [{ chain: 'ethereum' }, malformed('message is too short')],
  [{ chain: 'ethereum', message: 'ä'.repeat(10_241) }, malformed('message must not exceed 20KB')],
  [
    { chain: 'ethereum', message: 'x'.repeat(64), signature: '0x12' },
    malformed('signature must be 65 bytes in hexadecimal digits'),
  ],
  [
    { chain: 'ethereum', message: 'x'.repeat(64), signature: `0x${'00'.repeat(300)}` },
    malformed('signatures of smart contract wallets (ERC-1271, ERC-6492) are not supported'),
  ],
  [
    { chain: 'solana', message: 'x'.repeat(64), signature: 'x'.repeat(87) },
    malformed('signature must be 64 bytes in base64 or base64url'),
  ],
])('%j is refused before its message is read', async ([body, answer]) => {
  expect(await grant(body)).toMatchObject(answer)
})

test('a chain that is not enabled is refused by name; with none no body is read', async () => {
  const solana = await service.with({ AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'false' })
  const ethereum = await service.with({ AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'false' })
  const off = await service.with({
    AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'false',
    AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'false',
  })
  const disabled = (msg: string) => ({ status: 422, body: { error_code: 'web3_provider_disabled', msg } })
  expect(await grant({ chain: 'ethereum' }, {}, solana)).toMatchObject(disabled('Ethereum Web3 provider is disabled'))
  expect(await grant({ chain: 'solana' }, {}, ethereum)).toMatchObject(disabled('Solana Web3 provider is disabled'))
  const none = disabled('Web3 provider is disabled')
  expect([await grant({ chain: 7 }, {}, off), await off.get('/web3/nonce')]).toMatchObject([none, none])
  const settings = async (at: TestService) => {
    const { body } = await at.get('/settings')
    return [body.web3_ethereum_enabled, body.web3_solana_enabled]
  }
  expect([await settings(solana), await settings(ethereum), await settings(off)]).toEqual([
    [false, true],
    [true, false],
    [false, false],
  ])
  for (const each of [solana, ethereum, off]) await each.close()
})

test('sign-ins with a wallet have a limit per client address, apart from other grants', async () => {
  const limited = await service.with({ AUTH_RATE_LIMIT_HEADER: 'x-client', AUTH_RATE_LIMIT_WEB3: '2' })
  const from = { 'x-client': '192.0.2.77' }
  for (let i = 0; i < 2; i++) expect((await signIn(ethereumWallet(), {}, from, limited)).status).toBe(200)
  const over = await signIn(ethereumWallet(), {}, from, limited)
  expect([over.status, over.body.error_code]).toEqual([429, 'over_request_rate_limit'])
  expect(Number(over.headers['retry-after'])).toBeGreaterThan(0)
  expect((await signIn(ethereumWallet(), {}, { 'x-client': '192.0.2.78' }, limited)).status).toBe(200)
  const refresh = await limited.post('/token?grant_type=refresh_token', { refresh_token: 'abcdefghijkl' }, from)
  expect(refresh.status).toBe(400)
  await limited.close()
})

test.each([
  ['within a day', { expires: 0 }, USED],
  ['not even after its own end', { expires: 1_500 }, refused('Signed Ethereum message is expired')],
])('a message signs in no second time while its time is set longer: %s', async (_when, { expires }, refusal) => {
  const more = expires ? [`Expiration Time: ${after(expires).toISOString()}`] : []
  const body = ethereumWallet().body(service.clock.now(), { more })
  expect((await grant(body)).status).toBe(200)
  service.clock.advance({ seconds: 2_000 })
  await deleteExpired(service.deps, service.deps.log, {})
  const longer = await service.with({ AUTH_EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION: '24h' })
  expect(await grant(body, {}, longer)).toMatchObject(refusal)
  await longer.close()
})

test('used messages are deleted once time alone refuses them', async () => {
  const own = ethereumWallet()
  const body = own.body(service.clock.now(), { issuedAt: after(500) })
  expect((await grant(body)).status).toBe(200)
  const rows = async () =>
    Number((await service.deps.pool.query('select count(*) from used_web3_messages')).rows[0].count)
  const tidyUp = () => deleteExpired(service.deps, service.deps.log, {})
  const longest = await service.with({ AUTH_EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION: '24h' })
  service.clock.advance({ seconds: 500 + 24 * 3600 })
  await tidyUp()
  expect(await grant(body, {}, longest)).toMatchObject(USED)
  service.clock.advance({ seconds: 1 })
  expect(await grant(body, {}, longest)).toMatchObject(refused('Ethereum message was issued too long ago'))
  await longest.close()
  service.clock.advance({ seconds: 600 })
  await tidyUp()
  expect(await rows()).toBe(0)
})

test('hostile messages that are rightly signed never end in an unexpected failure', async () => {
  const own = { ethereum: ethereumWallet(), solana: solanaWallet() }
  const piece = fc.oneof(
    fc.constantFrom(
      ...['\0', '\r', '\r\n', '\u2028', '\u202e', '\ud800', '\udfff', '\u0085', '\ufeff', ':', ': ', '- ', '\t', '%00'],
      ...['Resources:', 'URI: ', 'URI: https://\u202eexample', 'Version: 1', 'Issued At: 2024-02-30T00:00:00Z', '🦊'],
    ),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constant('x'.repeat(5_000)),
  )
  const edits = fc.array(fc.tuple(fc.nat(400), fc.nat(30), piece), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('ethereum', 'solana'), edits, async (chain, changes) => {
      let message = own[chain].message(service.clock.now(), { statement: 'Sign in.' })
      for (const [at, removed, added] of changes) message = message.slice(0, at) + added + message.slice(at + removed)
      const { status } = await grant({ chain, message, signature: own[chain].sign(message) })
      expect([200, 400]).toContain(status)
    }),
    { numRuns: 60 },
  )
})
