import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { authHere } from './command-line.ts'

const check = (settings: Record<string, string>) => authHere(['config', 'check'], settings)

/** Expects a refusal with this line, once, and without the setting's value. */
async function expectProblem(settings: Record<string, string>, line: string) {
  const { code, stdout, stderr } = await check(settings)
  expect({ code, stdout }).toEqual({ code: 78, stdout: '' })
  expect(stderr.split(line)).toHaveLength(2)
}

/** Expects a configuration that is complete, with this warning. */
async function expectWarning(settings: Record<string, string>, line: string) {
  const { code, stdout, stderr } = await check(settings)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^the configuration is complete\n/)
  expect(stdout).toContain(`warnings:\n  - ${line}`)
}

test.each([
  'smtp://mail.example',
  'mail.example:587',
  'mail.example/submit',
  'mail. example',
  ' mail.example',
  'user@mail.example',
  '[::1]',
])('a mail server %j is not the name of one', async (host) => {
  await expectProblem({ AUTH_SMTP_HOST: host }, 'AUTH_SMTP_HOST must be a host name or address, without scheme, port')
})

test.each(['mail', 'mail_1', 'mail.example.', '192.0.2.1', '2001:db8::1', 'post.müller.example'])(
  'a mail server %s is the name of one',
  async (host) => {
    expect(await check({ AUTH_SMTP_HOST: host })).toMatchObject({ code: 0 })
  },
)

const github = (redirectUri: string) => ({
  AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
  AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'id',
  AUTH_EXTERNAL_GITHUB_SECRET: 'secret',
  AUTH_EXTERNAL_GITHUB_REDIRECT_URI: redirectUri,
})

describe('the callback of a provider', () => {
  test.each([
    'https://auth.example/',
    'https://auth.example/auth/callback',
    'http://auth.example/callback',
    'https://site.example/callback',
  ])('%s is not at this service', async (redirectUri) => {
    const line = 'AUTH_EXTERNAL_GITHUB_REDIRECT_URI must be AUTH_API_EXTERNAL_URL/callback'
    await expectProblem(github(redirectUri), line)
  })

  test('is refused for a provider of the operator, and accepted while the provider is disabled', async () => {
    const own = {
      ISSUER: 'https://id.example',
      CLIENT_ID: 'x',
      SECRET: 'x',
      REDIRECT_URI: 'https://id.example/callback',
    }
    const prefixed = Object.fromEntries(
      Object.entries(own).map(([name, value]) => [`AUTH_EXTERNAL_OIDC_ME_${name}`, value]),
    )
    const line = 'AUTH_EXTERNAL_OIDC_ME_REDIRECT_URI must be AUTH_API_EXTERNAL_URL/callback'
    await expectProblem({ ...prefixed, AUTH_EXTERNAL_OIDC_ME_ENABLED: 'true' }, line)
    expect(await check(prefixed)).toMatchObject({ code: 0 })
  })

  test.each([
    [{}, 'https://auth.example/callback'],
    [{ AUTH_API_EXTERNAL_URL: 'https://example.com/auth/v1/' }, 'https://example.com/auth/v1/callback'],
    [{ AUTH_MAILER_EXTERNAL_HOSTS: 'auth.example.org' }, 'https://auth.example.org/callback'],
  ])('with %j %s is', async (settings, redirectUri) => {
    expect(await check({ ...github(redirectUri), ...settings })).toMatchObject({ code: 0 })
  })
})

describe("Apple's client secret", () => {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const secretFor = (days: number) =>
    `${encode({ alg: 'ES256' })}.${encode({ exp: Math.floor(Date.now() / 1000) + days * 86_400 })}.c2lnbmF0dXJl`
  const apple = (secret: string) => ({
    AUTH_EXTERNAL_APPLE_ENABLED: 'true',
    AUTH_EXTERNAL_APPLE_CLIENT_ID: 'com.example',
    AUTH_EXTERNAL_APPLE_SECRET: secret,
    AUTH_EXTERNAL_APPLE_REDIRECT_URI: 'https://auth.example/callback',
  })

  test.each(['the-contents-of-a-p8-file', 'a.b.c', `${encode({ alg: 'ES256' })}.${encode({})}.c2ln`])(
    '%s is none',
    async (secret) => {
      await expectProblem(apple(secret), 'AUTH_EXTERNAL_APPLE_SECRET is no JWT with an expiry')
    },
  )

  test('that has expired is refused, one that soon will is warned of, and other ones are not', async () => {
    await expectProblem(apple(secretFor(-1)), 'AUTH_EXTERNAL_APPLE_SECRET has expired: sign a new one')
    await expectWarning(apple(secretFor(13.5)), 'AUTH_EXTERNAL_APPLE_SECRET expires in 13 day(s): sign a new one')
    expect((await check(apple(secretFor(15)))).stdout).not.toContain('APPLE')
  })

  test('of a server in its place is any text', async () => {
    const settings = { ...apple('any'), AUTH_EXTERNAL_APPLE_URL: 'http://127.0.0.1:1' }
    expect(await check(settings)).toMatchObject({ code: 0 })
  })
})

describe('an address of this service', () => {
  const webhook = (url: string) => ({ AUTH_WEBHOOK_URL: url, AUTH_WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}` })
  const hook = (url: string) => ({
    AUTH_HOOK_SEND_SMS_ENABLED: 'true',
    AUTH_HOOK_SEND_SMS_URI: url,
    AUTH_HOOK_SEND_SMS_UNSIGNED: 'true',
  })
  const BEHIND_PATH = { AUTH_API_EXTERNAL_URL: 'https://example.com/auth/v1' }

  test.each<[string, Record<string, string>]>([
    ['AUTH_WEBHOOK_URL', webhook('https://auth.example/events')],
    ['AUTH_WEBHOOK_URL', { ...BEHIND_PATH, ...webhook('https://example.com/auth/v1/events') }],
    ['AUTH_WEBHOOK_URL', { AUTH_MAILER_EXTERNAL_HOSTS: 'auth.example.org', ...webhook('https://auth.example.org/') }],
    ['AUTH_HOOK_SEND_SMS_URI', hook('https://auth.example/')],
    ['AUTH_HOOK_SEND_SMS_URI', { AUTH_PORT: '9999', ...hook('http://localhost:9999/hook') }],
    ['AUTH_HOOK_SEND_SMS_URI', { AUTH_PORT: '80', ...hook('http://[::1]/hook') }],
  ])('is no %s: %j', async (name, settings) => {
    await expectProblem(settings, `${name} must not be an address of this service`)
  })

  test.each<Record<string, string>>([
    { ...BEHIND_PATH, ...webhook('https://example.com/auth/v10') },
    webhook('https://auth.example:8443/'),
    hook('http://localhost:4000/auth'),
  ])('is not %j', async (settings) => {
    expect(await check(settings)).toMatchObject({ code: 0 })
  })
})

describe('a subject', () => {
  test.each([
    '{{ .Tokne }}',
    '{{ if .Tokne }}a{{ end }}',
    '{{ with .Data }}{{ $.Tokne }}{{ end }}',
    '{{ printf "%s" .Tokne }}',
  ])('%s has an unknown variable', async (subject) => {
    const line =
      'AUTH_MAILER_SUBJECTS_RECOVERY has the unknown variable {{ .Tokne }}; the nearest known one is {{ .Token }}'
    await expectProblem({ AUTH_MAILER_SUBJECTS_RECOVERY: subject }, line)
  })

  test('may use the variables of its kind, and those within a value of the user', async () => {
    const subject = '{{ .Token }} {{ .Data.name }} {{ with .Data }}{{ .anything }}{{ end }}'
    expect(await check({ AUTH_MAILER_SUBJECTS_RECOVERY: subject })).toMatchObject({ code: 0 })
    await expectProblem(
      { AUTH_MAILER_SUBJECTS_RECOVERY: '{{ .NewEmail }}' },
      'has the unknown variable {{ .NewEmail }}',
    )
  })
})

describe('a template', () => {
  const answers: Record<string, [number, string]> = {
    '/fine.html': [200, '<a href="{{ .ConfirmationURL }}">'],
    '/en.html': [200, '<a href="{{ .ConfirmationURL }}">'],
    '/page.html': [200, '<p>not a template'],
    '/misspelt.html': [200, '<a href="{{ .ConfirmationURL }}">{{ .Tokne }}'],
    '/shared.html': [200, '<a href="{{ .ConfirmationURL }}">{{ if .NewEmail }}{{ .NewEmail }}{{ end }}'],
  }
  const site = createFarServer(({ url = '' }, response) => {
    const [status, body] = answers[url] ?? [404, '']
    response.writeHead(status).end(body)
  })
  let siteUrl: string
  beforeAll(async () => {
    await once(site.listen(0, '127.0.0.1'), 'listening')
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  })
  afterAll(() => void site.close())
  const withTemplate = (value: string) => ({ AUTH_SITE_URL: siteUrl, AUTH_MAILER_TEMPLATES_RECOVERY: value })

  test.each([
    ['/etc/auth/recovery.html', 'is no file, and as a path of the site it cannot be used: its server answered 404'],
    ['page.html', 'is no file, and as a path of the site it cannot be used: expected one of {{ .ConfirmationURL }}'],
    ['misspelt.html', 'has the unknown variable {{ .Tokne }}; the nearest known one is {{ .Token }}'],
    ['https://127.0.0.1:x/recovery', 'is not a valid URL'],
  ])('%s is named, with the reason', async (value, reason) => {
    await expectProblem(withTemplate(value), `AUTH_MAILER_TEMPLATES_RECOVERY ${reason}`)
  })

  test('that one language lacks is named, with the language', async () => {
    const settings = { ...withTemplate(`${siteUrl}/{locale}.html`), AUTH_MAILER_LOCALES: 'en,de' }
    const reason = 'cannot be used in the language de: its server answered 404'
    await expectProblem(settings, `AUTH_MAILER_TEMPLATES_RECOVERY ${reason}`)
  })

  test('that is there passes, also one that several kinds share', async () => {
    for (const path of ['fine.html', '/shared.html', `${siteUrl}/fine.html`])
      expect(await check(withTemplate(path))).toMatchObject({ code: 0, stderr: '' })
  })

  test('in a file with a misspelt variable is named', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'templates-')), 'recovery.html')
    await writeFile(file, '{{ .ConfirmationURL }} {{ .Emial }}')
    await expectProblem(withTemplate(file), 'AUTH_MAILER_TEMPLATES_RECOVERY has the unknown variable {{ .Emial }}')
  })

  test('at a server that is not reached from here is a warning', async () => {
    const line = 'AUTH_MAILER_TEMPLATES_RECOVERY cannot be used: its server cannot be reached'
    await expectWarning(withTemplate('http://127.0.0.1:1/recovery.html'), line)
  })
})

test('a misspelt name is a warning at every log level', async () => {
  const line = 'AUTH_SMTP_HSOT is not a known variable; the nearest known one is AUTH_SMTP_HOST'
  await expectWarning({ AUTH_SMTP_HSOT: 'x', AUTH_LOG_LEVEL: 'error' }, line)
  const missing = {
    ...github('https://auth.example/callback'),
    AUTH_EXTERNAL_GITHUB_SECRET: '',
    AUTH_EXTERNAL_GITHUB_SERCET: 'x',
  }
  await expectProblem(missing, 'AUTH_EXTERNAL_GITHUB_SERCET is not a known variable')
})

test.each([
  ['GOTRUE_JWT_EXP', 'the variable is AUTH_JWT_EXP'],
  ['GOTRUE_DB_DATABASE_URL', 'the variable is AUTH_DATABASE_URL'],
  ['GOTRUE_API_PORT', 'the variable is AUTH_PORT'],
  ['GOTRUE_SMTP_HOTS', 'the nearest known variable is AUTH_SMTP_HOST'],
])('%s of the reference is not read: %s', async (name, advice) => {
  // Settings that the test service has are named only where they are missing.
  const settings = {
    [name]: 'x',
    ...(name.endsWith('URL') ? { AUTH_DATABASE_URL: '', AUTH_DATABASE_POOLER: 'none' } : {}),
  }
  const { stdout, stderr } = await check(settings)
  if (name !== 'GOTRUE_API_PORT') expect(stdout + stderr).toContain(`${name} is not read; ${advice}`)
  else expect(stdout + stderr).not.toContain(name)
})

test.each(['prefer', 'require', 'verify-ca'])(
  'sslmode=%s means verify-full, and the driver says nothing',
  async (mode) => {
    const warned = vi.spyOn(process, 'emitWarning')
    onTestFinished(() => warned.mockRestore())
    const url = `postgres://auth@127.0.0.1:1/auth?sslmode=${mode}`
    const settings = { AUTH_DATABASE_URL: url, AUTH_DATABASE_REPLICA_URL: url, AUTH_DATABASE_POOLER: 'none' }
    await expectWarning(settings, `AUTH_DATABASE_URL: sslmode=${mode} is taken as verify-full`)
    await expectWarning(
      { AUTH_DATABASE_FALLBACK_URLS: url },
      `AUTH_DATABASE_FALLBACK_URLS: sslmode=${mode} is taken as`,
    )
    expect(warned).not.toHaveBeenCalled()
  },
)

test('with --json every part of the result is a list', async () => {
  const { stdout } = await authHere(['config', 'check', '--json'], { AUTH_SMTP_HSOT: 'x' })
  expect(JSON.parse(stdout)).toEqual({
    complete: true,
    warnings: [expect.stringContaining('AUTH_SMTP_HSOT')],
    notes: [],
    review: expect.any(Array),
  })
})
