import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ProviderSignIns, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import type { TestService } from '../../../test/service.ts'
import { json, text } from '../../../test/upstream.ts'
import { apiError } from '../../errors.ts'

let all: ProviderSignIns
let closed: TestService
let limited: TestService
let folder: string
let log: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refusals-'))
  log = join(folder, 'log')
  all = await startProviderSignIns({
    AUTH_LOG_FILE: log,
    AUTH_LOG_LEVEL: 'info',
    AUTH_EXTERNAL_GITHUB_LINKING: 'never',
  })
  closed = await all.service.with({ AUTH_DISABLE_SIGNUP: 'true' })
  limited = await all.service.with({ AUTH_RATE_LIMIT_HEADER: 'X-Real-Address', AUTH_RATE_LIMIT_TOKEN_REFRESH: '1' })
  await comeBackLimited()
  await limited.deps.pool.query(`update rate_limits set expire = expire + 86400000 where key like 'callback:%'`)
})
afterEach(() => {
  for (const step of ['token', 'profile'] as const) all.far.answer('github', step)
})
afterAll(async () => {
  await limited.close()
  await closed.close()
  await all.close()
  await rm(folder, { recursive: true })
})

const ENDED = 'sign-in at a provider ended without a session'

async function linesOf(): Promise<Record<string, unknown>[]> {
  for (const { deps } of [all.service, closed, limited]) await new Promise((written) => deps.log.flush(written))
  const lines = (await readFile(log, 'utf8')).split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === ENDED)
}

const comeBackLimited = () => limited.get('/callback?code=x&state=none', { 'x-real-address': '192.0.2.1' })
const signIn = (name = 'github') => all.signIn(name, all.newAccount(name))
const begin = () => all.begin('github', all.newAccount('github'))

/** A callback of an attempt that another browser began. */
async function elsewhere() {
  const begun = await all.service.get('/authorize?provider=github')
  const { state } = all.far.visit('github', new URL(String(begun.headers.location)), all.newAccount('github'))
  await all.service.otherBrowser().get(`/callback?code=x&state=${state}`)
}

test.each<[string, () => Promise<unknown>, object]>([
  ['an attempt that is unknown', () => all.service.get('/callback?code=x'), { code: 'bad_oauth_callback' }],
  [
    'an attempt of another browser',
    elsewhere,
    { provider: 'github', code: 'bad_oauth_state', setting: 'AUTH_EXTERNAL_GITHUB_REDIRECT_URI' },
  ],
  [
    'an attempt that has expired',
    async () => {
      const begun = await begin()
      all.service.clock.advance({ seconds: 301 })
      await begun.comeBack()
    },
    { provider: 'github', code: 'bad_oauth_state', setting: 'AUTH_EXTERNAL_FLOW_STATE_EXPIRY_DURATION' },
  ],
  [
    'an error of the provider',
    async () => (await begin()).comeBack({ error: 'access_denied', error_description: 'ada@example.com said no' }),
    { provider: 'github', code: 'access_denied', reason: 'the provider answered with an error' },
  ],
  [
    'an error of the provider that names our settings',
    async () => (await begin()).comeBack({ error: 'redirect_uri_mismatch' }),
    { provider: 'github', code: 'redirect_uri_mismatch', setting: 'AUTH_EXTERNAL_GITHUB_REDIRECT_URI' },
  ],
  [
    'an error of the provider that is named as one of ours',
    async () => (await begin()).comeBack({ error: 'signup_disabled' }),
    { provider: 'github', code: 'signup_disabled', reason: 'the provider answered with an error' },
  ],
  [
    'a limit that has a setting',
    () => comeBackLimited(),
    { code: 'over_request_rate_limit', setting: 'AUTH_RATE_LIMIT_TOKEN_REFRESH' },
  ],
  [
    'a limit that has none',
    async () => {
      const begun = await all.service.get('/authorize?provider=twitter', { host: 'other.example' })
      const { pathname, search } = new URL(String(begun.headers.location))
      const { pool, now } = all.service.deps
      const usedUp = `insert into rate_limits (key, points, expire) values ('provider-requests:all', 2000, $1)`
      await pool.query(usedUp, [now().getTime() + 1_000])
      await all.service.get(pathname + search)
      all.service.clock.advance({ seconds: 2 })
    },
    { provider: 'twitter', code: 'over_request_rate_limit' },
  ],
  [
    'words of no provider',
    async () => (await begin()).comeBack({ error: 'ada@example.com' }),
    { provider: 'github', code: 'unknown' },
  ],
  [
    'a wrong secret',
    async () => {
      all.far.answer('github', 'token', json({ error: 'invalid_client' }, 401))
      await signIn()
    },
    {
      provider: 'github',
      code: 'unexpected_failure',
      reason: expect.stringContaining('invalid_client'),
      setting: 'AUTH_EXTERNAL_GITHUB_SECRET',
    },
  ],
  [
    'a profile that fails',
    async () => {
      all.far.answer('github', 'profile', text('', 500))
      await signIn()
    },
    { provider: 'github', code: 'unexpected_failure', reason: 'the provider answered 500' },
  ],
  [
    'a profile that is no JSON',
    async () => {
      all.far.answer('github', 'profile', text('<html>'))
      await signIn()
    },
    { provider: 'github', code: 'unexpected_failure', reason: 'invalid JSON' },
  ],
  [
    'no address',
    () => all.signIn('discord', { id: 'without-an-address' }),
    { provider: 'discord', code: 'unexpected_failure', setting: 'AUTH_EXTERNAL_DISCORD_EMAIL_OPTIONAL' },
  ],
  [
    'a malformed address',
    () => all.signIn('discord', { id: 'malformed', email: 'ada at example' }),
    { provider: 'discord', code: 'unexpected_failure', reason: 'External provider reported an invalid email address' },
  ],
  [
    'an unverified address',
    () => signIn('spotify'),
    {
      provider: 'spotify',
      code: 'provider_email_needs_verification',
      setting: 'AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS',
    },
  ],
  [
    'an account that may not be linked',
    async () => {
      const account = all.newAccount('github')
      await all.service.signedIn(account.email)
      await all.signIn('github', account)
    },
    { provider: 'github', code: 'email_exists', setting: 'AUTH_EXTERNAL_GITHUB_LINKING' },
  ],
  [
    'sign-ups that are disabled',
    async () => {
      const begun = await closed.get('/authorize?provider=github')
      const account = all.newAccount('github')
      const callback = all.far.visit('github', new URL(String(begun.headers.location)), account)
      await closed.get(`/callback?${new URLSearchParams(callback)}`)
    },
    { provider: 'github', code: 'signup_disabled', setting: 'AUTH_DISABLE_SIGNUP' },
  ],
  [
    'a provider that was disabled meanwhile',
    async () => {
      const begun = await begin()
      const { providers } = all.service.deps
      all.service.deps.providers = {
        ...providers,
        find: () => {
          throw apiError('validation_failed', { message: 'Unsupported provider: provider is not enabled' })
        },
      }
      await begun.comeBack()
      all.service.deps.providers = providers
    },
    { provider: 'github', code: 'oauth_provider_not_supported', setting: 'AUTH_EXTERNAL_GITHUB_ENABLED' },
  ],
])('%s leaves one line with provider, code, reason and setting, and no address', async (_what, end, expected) => {
  const before = (await linesOf()).length
  await end()
  const linesSince = async () => (await linesOf()).slice(before)
  // A flush during a write leaves the newest lines to the next.
  await expect.poll(linesSince).toEqual([expect.objectContaining({ reason: expect.any(String), ...expected })])
  const lines = await linesSince()
  // A sentence, not an error turned into text.
  expect(lines[0]?.reason).not.toMatch(/^(?:Type|Syntax)?Error:/)
  if (!('setting' in expected)) expect(lines[0]).not.toHaveProperty('setting')
  expect(JSON.stringify(lines)).not.toMatch(/@example/)
})

test('a sign-in that succeeds leaves none', async () => {
  const before = (await linesOf()).length
  await signIn()
  // The line of a later refusal comes after all others.
  await all.service.get('/callback?code=x')
  await expect.poll(async () => (await linesOf()).slice(before)).toMatchObject([{ code: 'bad_oauth_callback' }])
})
