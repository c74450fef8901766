// The service itself as administrators see it: settings, keys, hooks, mails and providers.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Admin, asAdmin, bearer } from '../../../../test/admin.ts'
import { type OpenIdProvider, signInAt, startOpenIdProvider, visitFrom } from '../../../../test/openid-provider.ts'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { startUpstream, type Upstream } from '../../../../test/upstream.ts'
import { variables } from '../../../config.ts'
import { deleteExpired } from '../../../housekeeping.ts'
import { generateKeySet } from '../../commands/keys-command.ts'
import { showSettings } from './shown-settings.ts'

const SECRETS = {
  AUTH_SMTP_PASS: 'canary-of-the-mail-server',
  AUTH_SMTP_HEADERS: '{"x-key":"canary-of-a-header"}',
  AUTH_SECURITY_CAPTCHA_SECRET: 'canary-of-the-captcha',
  AUTH_EXTERNAL_GITHUB_SECRET: 'canary-of-github',
  AUTH_MAILER_TEST_OTP: 'store@example.com:482913',
  AUTH_ENCRYPTION_KEYS: `2026-11-x7kq:${Buffer.alloc(32, 9).toString('base64url')}`,
  AUTH_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
}

const agree: Parameters<Upstream['answer']>[0] = (response) => void response.writeHead(204).end()

let service: TestService
let admin: Admin
let corp: OpenIdProvider
let hook: Upstream
beforeAll(async () => {
  corp = await startOpenIdProvider()
  hook = await startUpstream(agree)
  service = await startTestService({
    ...SECRETS,
    ...corp.settings('OIDC_CORP'),
    AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
    AUTH_WEBHOOK_URL: 'https://8.8.8.8/events?key=canary-of-a-query',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    AUTH_HOOK_BEFORE_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_BEFORE_USER_CREATED_URI: `${hook.url}/before?key=canary-of-the-hook`,
    AUTH_HOOK_BEFORE_USER_CREATED_UNSIGNED: 'true',
  })
  admin = await asAdmin(service)
})
afterAll(async () => {
  await service.close()
  await corp.close()
  await hook.close()
})

// biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
let read: Promise<any> | undefined
/** They are those of the start. */
const settingsNow = () => (read ??= admin.get('/admin/settings').then(({ body }) => body))
const setting = async (name: string) =>
  (await settingsNow()).settings.find((each: { name: string }) => each.name === name)

describe('settings', () => {
  test('each variable is listed with its effective value and where it comes from', async () => {
    const { settings } = await settingsNow()
    const names = settings.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(Object.keys(variables).map((name) => `AUTH_${name}`)))
    expect(names).toContain('AUTH_EXTERNAL_OIDC_CORP_ISSUER')
    expect(await setting('AUTH_SITE_URL')).toMatchObject({
      ...{ value: 'https://site.example', source: 'environment', given_as: 'AUTH_SITE_URL', secret: false },
    })
    expect(await setting('AUTH_JWT_EXP')).toMatchObject({ value: '3600', source: 'default', type: 'duration' })
    expect(await setting('AUTH_RATE_LIMIT_HEADER')).toMatchObject({ value: null, source: 'unset', default: null })
  })

  test('no answer of an administrator holds a secret', async () => {
    expect(await setting('AUTH_SMTP_PASS')).toMatchObject({ value: null, source: 'environment', secret: true })
    expect(await setting('AUTH_DATABASE_URL')).toMatchObject({ value: null, source: 'environment', secret: true })
    expect(await setting('AUTH_WEBHOOK_URL')).toMatchObject({ value: 'https://8.8.8.8/events?…' })
    for (const path of ['settings', 'keys', 'hooks', 'providers', 'mail-templates']) {
      const { status, text } = await admin.get(`/admin/${path}`)
      expect(status).toBe(200)
      const values = Object.values(SECRETS).flatMap((value) => value.split(/[:,"]/))
      for (const secret of values.filter((part) => part.length > 15)) expect(text).not.toContain(secret)
      expect(text).not.toMatch(/canary|482913|postgres:\/\//)
    }
  })

  test.each([
    ['https://ada:a,b|c" d@app.example', 'https://…@app.example'],
    ['https://ada@b:c@app.example/d,e?key=f,g#h', 'https://…@app.example/d,e?…'],
    ['https://app.example/a,b?key=c', 'https://app.example/a,b?…'],
    ['my+app://ada:b@app', 'my+app://…@app'],
    ['https://app.example/@ada', 'https://app.example/@ada'],
  ])('the URL %s is shown as %s', async (given, shown) => {
    const { config } = service.deps
    const SITE_URL = { name: 'AUTH_SITE_URL', value: given, from: 'environment' as const }
    const origin = { ...config.origin, given: { ...config.origin.given, SITE_URL } }
    const { settings } = showSettings({ ...service.deps, config: { ...config, origin } })
    expect(settings.find(({ name }) => name === 'AUTH_SITE_URL')?.value).toBe(shown)
  })

  /** Parts of names whose values let something in. */
  const HIDDEN =
    /SECRET|PASS$|TOKEN$|_KEYS?$|TEST_OTP$|HEADERS$|HTTP_(URL|BODY)$|^DATABASE_.*URLS?$|HOOK_.*DATABASE_URL$/

  test('a variable whose name sounds secret is one', () => {
    const shown = Object.entries(variables).flatMap(([name, { secret }]) =>
      HIDDEN.test(name) && !secret ? [name] : [],
    )
    expect(shown).toEqual(['CORS_ALLOWED_HEADERS'])
  })

  test('the findings of config check stand at the settings that they name', async () => {
    const { review, problems } = await settingsNow()
    expect(review).toContain('AUTH_PASSWORD_MIN_LENGTH is below 8')
    expect(problems).toContain('AUTH_EXTERNAL_GITHUB_CLIENT_ID is required while AUTH_EXTERNAL_GITHUB_ENABLED is true')
    const { findings } = await setting('AUTH_PASSWORD_MIN_LENGTH')
    expect(findings).toEqual(['AUTH_PASSWORD_MIN_LENGTH is below 8'])
    expect((await setting('AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED')).findings).toHaveLength(1)
    expect((await setting('AUTH_PORT')).findings).toEqual([])
  })
})

test('keys are listed by id with their state and age, and the rows that need them', async () => {
  await service.settled()
  const sealed = await service.deps.pool.query('select id from messages where sealed is not null')
  await service.deps.sealedRows.count()
  const { body } = await admin.get('/admin/keys')
  expect(body.signing).toEqual([{ id: null, algorithm: 'HS256', state: 'signs', published: false }])
  expect(body.encryption.map(({ id, state }: { id: string; state: string }) => [id, state])).toEqual([
    ['2026-11-x7kq', 'encrypts'],
    [null, 'decrypts'],
  ])
  const [{ created, rows }] = body.encryption
  expect([created, rows.messages]).toEqual(['2026-11', sealed.rows.length])
  expect(body.counted_at).toBe(service.clock.now().toISOString())
})

test('a key that signs, and one that has stopped to, are listed with the time of keys generate', async () => {
  const { keys: signers } = await generateKeySet('ES256', 'new')
  const { keys: verifiers } = await generateKeySet('ES256', 'old')
  const old = verifiers.map(({ iat: _unknown, ...key }) => ({ ...key, key_ops: ['verify'] }))
  const other = await service.with({ AUTH_JWT_KEYS: JSON.stringify([...signers, ...old]) })
  const { body, text } = await other.get('/admin/keys', other.admin)
  expect(body.signing).toEqual([
    { id: 'new', algorithm: 'ES256', state: 'signs', published: true, created: expect.stringMatching(/^20\d\d-/) },
    { id: 'old', algorithm: 'ES256', state: 'verifies', published: true },
    { id: null, algorithm: 'HS256', state: 'verifies', published: false },
  ])
  expect(signers.filter(({ d = '' }) => text.includes(d))).toEqual([])
  expect(body.encryption[0]).not.toHaveProperty('rows')
})

describe('hooks', () => {
  const hooks = async () => (await admin.get('/admin/hooks')).body.hooks
  const failuresNow = async () => (await hooks())[0].failures
  const signUp = () =>
    service.post('/signup', { email: `${crypto.randomUUID()}@example.com`, password: 'correct horse' })

  test('a failing hook shows why, once in ten seconds with the number of failures', async () => {
    hook.answer((response) => void response.writeHead(418).end())
    onTestFinished(() => hook.answer(agree))
    await signUp()
    await expect.poll(failuresNow).toEqual([
      {
        ...{ failed_at: service.clock.now().toISOString(), failures: 1, result: 'unexpected_failure' },
        ...{ reason: 'the hook answered 418', question_id: expect.any(String) },
      },
    ])
    await signUp()
    await signUp()
    service.clock.advance({ seconds: 10 })
    await signUp()
    const counts = async () => (await failuresNow()).map(({ failures }: { failures: number }) => failures)
    await expect.poll(counts).toEqual([3, 1])
    const [{ point, enabled, uri, signed }, next] = await hooks()
    expect([point, enabled, uri, signed]).toEqual(['before-user-created', true, `${hook.url}/before`, false])
    expect(next).toEqual({
      ...{ point: 'after-user-created', setting: 'AUTH_HOOK_AFTER_USER_CREATED_ENABLED', enabled: false, failures: [] },
    })
  })

  test('the last twenty failures of a point are kept, for thirty days', async () => {
    for (let i = 0; i < 22; i++) {
      service.clock.advance({ seconds: 10 })
      service.deps.hookFailures.record('send-sms', { questionId: `${i}`, result: 'hook_timeout', reason: 'a\0b' })
      await service.deps.hookFailures.written()
    }
    const { failures } = (await hooks()).find(({ point }: { point: string }) => point === 'send-sms')
    expect(failures).toHaveLength(20)
    expect(failures[0]).toMatchObject({ question_id: '21', reason: 'ab' })
    await service.deps.pool.query("update hook_failures set failed_at = failed_at - interval '31 days'")
    await deleteExpired(service.deps, service.deps.log)
    expect((await hooks()).flatMap(({ failures }: { failures: object[] }) => failures)).toEqual([])
  })
})

describe('templates of mails', () => {
  test('each kind is previewed in each language with made-up values', async () => {
    const { body } = await admin.get('/admin/mail-templates')
    expect([body.languages, body.default_language, body.sent_by]).toEqual([['en', 'de'], 'en', 'mail_server'])
    for (const { kind, source } of body.templates) {
      expect(source).toBe('built_in')
      for (const language of body.languages) {
        const preview = await admin.get(`/admin/mail-templates/${kind}?language=${language}`)
        expect(preview.body).toMatchObject({
          kind,
          language,
          is_own: false,
          html: expect.stringContaining('<!doctype'),
        })
      }
    }
    expect((await admin.get('/admin/mail-templates/invite?language=de')).body.subject).toBe('Du bist eingeladen')
    expect((await admin.get('/admin/mail-templates/nothing')).status).toBe(404)
    expect((await admin.get('/admin/mail-templates/invite?language=xx')).status).toBe(400)
  })

  test('a template of the operator is previewed as it is rendered, or reported as missing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'templates-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'invite.html')
    await writeFile(file, '<p>Come in, {{ .Email }}: {{ .ConfirmationURL }}</p>')
    const other = await service.with({
      AUTH_MAILER_TEMPLATES_INVITE: file,
      AUTH_MAILER_TEMPLATES_RECOVERY: 'http://127.0.0.1:1/recovery.html',
    })
    const get = async (path: string) => (await other.get(`/admin/mail-templates${path}`, other.admin)).body
    const sources = (await get('')).templates.map(({ source }: { source: string }) => source)
    expect(new Set(sources)).toEqual(new Set(['built_in', 'file', 'url']))
    expect(await get('/invite')).toMatchObject({
      is_own: true,
      html: expect.stringContaining('Come in, ada@example.com'),
    })
    expect(await get('/recovery')).toMatchObject({ is_own: false, subject: 'Reset your password' })
  })

  test('a sample goes to the confirmed address of the administrator alone, twenty an hour', async () => {
    const password = 'correct horse'
    const email = 'operator@example.com'
    const { id } = await admin.create({ email, password, email_confirm: true, role: 'service_role' })
    const { body } = await service.post('/token?grant_type=password', { email, password })
    const send = (token: string) =>
      service.post('/admin/mail-templates/magic_link/send', { language: 'de' }, bearer(token))
    const sent = await send(body.access_token)
    expect([sent.status, sent.body]).toEqual([202, { message_id: expect.any(String) }])
    const mail = await service.mailbox.waitFor(email)
    expect(mail.text).toContain('ada@example.com')
    const { rows } = await service.deps.pool.query(
      "select payload from audit_log_entries where payload ->> 'action' = 'mail_sample_sent'",
    )
    expect(rows).toMatchObject([{ payload: { actor_id: id, traits: { kind: 'magic_link' } } }])
    // A token that operators make from the secret has no address.
    expect((await admin.post('/admin/mail-templates/magic_link/send')).status).toBe(422)
    const statuses: number[] = []
    for (let i = 0; i < 20; i++) statuses.push((await send(body.access_token)).status)
    expect(statuses).toEqual([...Array(19).fill(202), 429])
  })
})

describe('providers', () => {
  test('each shows its redirect address and what it lacks', async () => {
    const { providers } = (await admin.get('/admin/providers')).body
    const listed = (name: string) => providers.find(({ provider }: { provider: string }) => provider === name)
    expect(listed('corp')).toEqual({
      ...{ provider: 'corp', origin: 'settings', enabled: true, usable: true, missing: [], problems: [] },
      ...{ redirect_uri: 'https://auth.example/callback', setting: 'AUTH_EXTERNAL_OIDC_CORP_ENABLED' },
    })
    expect(listed('github')).toMatchObject({
      ...{ origin: 'built_in', enabled: true, usable: false, redirect_uri: 'https://auth.example/callback' },
      missing: ['AUTH_EXTERNAL_GITHUB_CLIENT_ID', 'AUTH_EXTERNAL_GITHUB_REDIRECT_URI'],
    })
    expect(listed('keycloak').missing).toContain('AUTH_EXTERNAL_KEYCLOAK_URL')
  })

  const counts = async () => {
    const { rows } = await service.deps.pool.query(
      'select (select count(*) from users)::integer as users, (select count(*) from sessions)::integer as sessions, (select count(*) from identities)::integer as identities',
    )
    return rows[0]
  }
  const begin = async () => (await admin.post('/admin/providers/corp/test')).body
  const outcome = async (id: string) => (await admin.get(`/admin/providers/tests/${id}`)).body

  test('a test shows the account as a sign-in would store it, and creates nothing', async () => {
    const before = await counts()
    const { id, url } = await begin()
    expect(await outcome(id)).toEqual({ state: 'waiting' })
    const account = { sub: 'ada', email: 'ada@corp.example', email_verified: true, name: 'Ada' }
    corp.next(account)
    const { pathname, search } = await visitFrom(service, corp, url)
    const page = await service.get(pathname + search)
    expect([page.status, page.headers['set-cookie']]).toEqual([200, expect.stringContaining('Max-Age=0')])
    expect(page.text).toContain('The test is complete')
    expect(page.text).not.toContain('ada@corp.example')
    const succeeded = {
      ...{ state: 'succeeded', provider: 'corp' },
      identity: expect.objectContaining({ sub: 'ada', email: 'ada@corp.example', email_verified: true, name: 'Ada' }),
      emails: [{ email: 'ada@corp.example', verified: true, primary: true }],
    }
    expect(await outcome(id)).toEqual(succeeded)
    // Neither the address nor its callback works twice.
    expect((await service.get(url.replace('https://auth.example', ''))).headers.location).toBeUndefined()
    for (const browser of [service, service.otherBrowser()]) {
      const again = await browser.get(pathname + search)
      expect([again.status, again.headers.location]).toEqual([303, expect.stringContaining('bad_oauth_state')])
    }
    expect(await outcome(id)).toEqual(succeeded)
    expect(await counts()).toEqual(before)
  })

  test('a failure is shown with its cause', async () => {
    const { id, url } = await begin()
    corp.next('denied')
    const callback = await visitFrom(service, corp, url)
    // Some providers post a form.
    expect((await service.submit('/callback', Object.fromEntries(callback.searchParams))).status).toBe(200)
    expect(await outcome(id)).toMatchObject({
      ...{ state: 'failed', error: { code: 'access_denied', reason: 'The user said no' } },
    })
    expect((await admin.post('/admin/providers/gitlab/test')).status).toBe(400)
  })

  test.each([
    ['in another browser', { reason: 'the browser brought no cookie of this attempt' }, () => service.otherBrowser()],
    [
      'too late',
      { message: 'OAuth state has expired' },
      () => {
        service.clock.advance({ seconds: 301 })
        return service
      },
    ],
  ])('a test whose browser comes back %s has failed, and ends there', async (_how, error, comesBack) => {
    const before = await counts()
    const { id, url } = await begin()
    corp.next({ sub: 'ada', email: 'ada@corp.example', email_verified: true })
    const { pathname, search } = await visitFrom(service, corp, url)
    const page = await comesBack().get(pathname + search)
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('The test is complete')])
    const failed = { state: 'failed', error: { code: 'bad_oauth_state', ...error } }
    expect(await outcome(id)).toMatchObject(failed)
    expect((await service.get(pathname + search)).status).toBe(303)
    expect(await outcome(id)).toMatchObject(failed)
    expect(await counts()).toEqual(before)
  })

  test('an outcome that no key opens is a failure', async () => {
    const { id, url } = await begin()
    corp.next({ sub: 'ada', email: 'ada@corp.example', email_verified: true })
    await signInAt(service, corp, url)
    const other = await service.with({
      AUTH_ENCRYPTION_KEYS: `2026-12-m3sd:${Buffer.alloc(32, 8).toString('base64url')}`,
    })
    const { status, body } = await other.get(`/admin/providers/tests/${id}`, other.admin)
    expect([status, body]).toEqual([
      200,
      {
        ...{ state: 'failed', provider: 'corp' },
        error: {
          ...{ code: 'unexpected_failure', message: 'The outcome cannot be decrypted' },
          reason: 'sealed under the key 2026-11-x7kq, which AUTH_ENCRYPTION_KEYS does not have',
        },
      },
    ])
  })

  test('a provider that cannot be reached is a failure too', async () => {
    const down = { ...corp.settings('OIDC_DOWN'), AUTH_EXTERNAL_OIDC_DOWN_ISSUER: 'http://127.0.0.1:1' }
    const other = await service.with(down)
    const { id, url } = (await other.post('/admin/providers/down/test', {}, other.admin)).body
    const { pathname, search } = new URL(url)
    const page = await other.get(pathname + search)
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('The test is complete')])
    expect(await outcome(id)).toMatchObject({ state: 'failed', error: { code: 'provider_unavailable' } })
  })

  test('an outcome is for administrators, and goes with its attempt', async () => {
    const { id, url } = await begin()
    corp.next({ sub: 'grace', email: 'grace@corp.example', email_verified: true })
    await signInAt(service, corp, url)
    expect((await service.get(`/admin/providers/tests/${id}`)).status).toBe(401)
    const { rows } = await service.deps.pool.query('select sealed from flow_states where id = $1', [id])
    expect(rows[0].sealed).not.toContain('grace')
    service.clock.advance({ seconds: 1_000 })
    await deleteExpired(service.deps, service.deps.log)
    expect(await outcome(id)).toEqual({ state: 'waiting' })
  })
})
