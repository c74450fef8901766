import type { ConfigError } from '@services/common/config/variables'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../config.ts'
import { settingsToReview } from '../review.ts'

const REQUIRED = {
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
  AUTH_DATABASE_URL: 'postgres://localhost/auth',
  AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
  AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
}
const KEY = Buffer.alloc(24, 7).toString('base64')

/** Problems of the settings of one point, named by their last part. */
function problemsOf(given: Record<string, string>): readonly string[] {
  const named = Object.entries(given).map(([name, value]) => [`AUTH_HOOK_SEND_SMS_${name}`, value])
  try {
    readConfig({ ...REQUIRED, ...Object.fromEntries(named) })
    return []
  } catch (error) {
    return (error as ConfigError).problems
  }
}

const signed = { SECRETS: `v1,whsec_${KEY}` }

test.for<[string, Record<string, string>]>([
  ['https', { URI: 'https://hooks.example/sms?key=1', ...signed }],
  ['a local host', { URI: 'http://localhost:9000/sms', ...signed }],
  ['IPv6', { URI: 'http://[::1]:9000', ...signed }],
  ['the host of a container', { URI: 'http://host.docker.internal/sms', ...signed }],
  ['several secrets', { URI: 'https://hooks.example', SECRETS: `v1,whsec_${KEY}||v1,whsec_${KEY}|` }],
  ['no secret', { URI: 'https://hooks.example', UNSIGNED: 'true' }],
  ['a function', { URI: 'pg-functions://postgres/public/_send_1' }],
  ['a function, with more behind', { URI: 'pg-functions://x/app/send/more?a=b' }],
  ['a function elsewhere', { URI: 'pg-functions://x/app/send', DATABASE_URL: 'postgres://u@db/app' }],
])('accepts %s', ([, settings]) => {
  expect(problemsOf({ ENABLED: 'true', ...settings })).toEqual([])
})

describe.for(['true', 'false'])('enabled is %s', (ENABLED) => {
  test.for<[string, Record<string, string>, RegExp]>([
    ['http elsewhere', { URI: 'http://hooks.example', ...signed }, /_URI must be https/],
    ['a host that only begins like a local one', { URI: 'http://localhost.example', ...signed }, /_URI must be/],
    ['another scheme', { URI: 'ftp://localhost', ...signed }, /_URI must be/],
    ['a user name', { URI: 'https://user:word@hooks.example', ...signed }, /_URI must have no user name/],
    ['no function', { URI: 'pg-functions://postgres/public' }, /_URI must be/],
    ['a quoted name', { URI: 'pg-functions://postgres/public/a"b' }, /_URI must be/],
    ['a long name', { URI: `pg-functions://postgres/public/${'a'.repeat(64)}` }, /_URI must be/],
    ['no base64', { URI: 'https://hooks.example', SECRETS: 'v1,whsec_***' }, /_SECRETS must list/],
    ['too short a secret', { URI: 'https://hooks.example', SECRETS: 'v1,whsec_AAAA' }, /_SECRETS must list/],
    ['more after a secret', { URI: 'https://hooks.example', SECRETS: `v1,whsec_${KEY} x` }, /_SECRETS must list/],
    ['a secret without a version', { URI: 'https://hooks.example', SECRETS: `whsec_${KEY}` }, /_SECRETS must list/],
    ['half a key pair', { URI: 'https://hooks.example', SECRETS: `v1a,whpk_${KEY}` }, /_SECRETS must list/],
    [
      'keys of two pairs',
      { URI: 'https://hooks.example', SECRETS: `v1a,whpk_${KEY}:whsk_${Buffer.alloc(32, 1).toString('base64')}` },
      /_SECRETS must list v1a secrets whose two keys belong together/,
    ],
    ['both ways', { URI: 'https://hooks.example', UNSIGNED: 'true', ...signed }, /_UNSIGNED=true excludes/],
    [
      'a database by HTTP',
      { URI: 'https://hooks.example', DATABASE_URL: 'postgres://u@db/app', ...signed },
      /_DATABASE_URL needs a pg-functions/,
    ],
    ['no time', { URI: 'https://hooks.example', TIMEOUT: '0', ...signed }, /_TIMEOUT must be more than zero/],
    ['too much time', { URI: 'https://hooks.example', TIMEOUT: '16s', ...signed }, /_TIMEOUT must be at most/],
    ['no attempt', { URI: 'https://hooks.example', ATTEMPTS: '0', ...signed }, /_ATTEMPTS must be/],
  ])('refuses %s', ([, settings, problem]) => {
    expect(problemsOf({ ENABLED, ...settings })).toEqual([expect.stringMatching(problem)])
  })
})

test('an enabled hook needs an address, and a secret by HTTP', () => {
  expect(problemsOf({ ENABLED: 'true' })).toEqual([expect.stringMatching(/^AUTH_HOOK_SEND_SMS_URI is required/)])
  expect(problemsOf({ ENABLED: 'true', URI: 'https://hooks.example' })).toEqual([
    expect.stringMatching(/^AUTH_HOOK_SEND_SMS_SECRETS is required.*AUTH_HOOK_SEND_SMS_UNSIGNED=true/),
  ])
  expect(problemsOf({ ENABLED: 'false', URI: 'https://hooks.example' })).toEqual([])
})

test('a time limit beyond that of requests is a warning where requests wait', () => {
  const hook = (point: string) => ({
    [`AUTH_HOOK_${point}_ENABLED`]: 'true',
    [`AUTH_HOOK_${point}_URI`]: 'https://hooks.example',
    [`AUTH_HOOK_${point}_SECRETS`]: `v1,whsec_${KEY}`,
    [`AUTH_HOOK_${point}_TIMEOUT`]: '10s',
  })
  const { config, warnings } = readConfig({ ...REQUIRED, ...hook('CUSTOM_ACCESS_TOKEN'), ...hook('SEND_SMS') })
  expect(warnings).toEqual([
    expect.stringMatching(/^AUTH_HOOK_CUSTOM_ACCESS_TOKEN_TIMEOUT is not below AUTH_API_MAX_REQUEST_DURATION/),
  ])
  expect(Object.keys(config.hooks).toSorted()).toEqual(['customize-access-token', 'send-sms'])
})

test('time limits that add up to that of requests are a warning for each request that waits for all', () => {
  const hook = (point: string, seconds: number, more = {}) => ({
    [`AUTH_HOOK_${point}_ENABLED`]: 'true',
    [`AUTH_HOOK_${point}_URI`]: 'https://hooks.example',
    [`AUTH_HOOK_${point}_SECRETS`]: `v1,whsec_${KEY}`,
    [`AUTH_HOOK_${point}_TIMEOUT`]: `${seconds}s`,
    ...more,
  })
  const warningsOf = (...hooks: object[]) => readConfig({ ...REQUIRED, ...Object.assign({}, ...hooks) }).warnings
  const token = hook('CUSTOM_ACCESS_TOKEN', 5)
  const sms = (isSync: string) => hook('SEND_SMS', 5, { AUTH_HOOK_SEND_SMS_SYNC: isSync })
  expect(warningsOf(token, hook('BEFORE_USER_CREATED', 4))).toEqual([])
  expect(warningsOf(token, sms('false'))).toEqual([])
  expect(warningsOf(token, hook('BEFORE_USER_CREATED', 5))).toEqual([
    expect.stringMatching(
      /^AUTH_HOOK_BEFORE_USER_CREATED_TIMEOUT \+ AUTH_HOOK_CUSTOM_ACCESS_TOKEN_TIMEOUT is not .*sign-up/,
    ),
  ])
  expect(warningsOf(token, sms('true')).join()).toMatch(/AUTH_HOOK_SEND_SMS_TIMEOUT is not below/)
  expect(warningsOf(token, hook('PASSWORD_VERIFICATION_ATTEMPT', 5)).join()).toMatch(/a sign-in by password/)
  expect(warningsOf(token, hook('MFA_VERIFICATION_ATTEMPT', 5)).join()).toMatch(/a second factor/)
  // Each of the two is too long by itself.
  expect(warningsOf(hook('CUSTOM_ACCESS_TOKEN', 11), hook('BEFORE_USER_CREATED', 5))).toHaveLength(1)
})

test('an unsigned hook by HTTP is a setting to review', () => {
  const unsigned = { HOOK_SEND_SMS_ENABLED: 'true', HOOK_SEND_SMS_URI: 'https://hooks.example' }
  const { config } = readConfig({ ...REQUIRED, ...unsigned, HOOK_SEND_SMS_UNSIGNED: 'true' })
  expect(settingsToReview(config)).toContainEqual(expect.stringMatching(/^AUTH_HOOK_\*_UNSIGNED is enabled/))
  const signedConfig = readConfig({ ...REQUIRED, ...unsigned, HOOK_SEND_SMS_SECRETS: `v1,whsec_${KEY}` }).config
  expect(settingsToReview(signedConfig).join()).not.toContain('UNSIGNED')
})

test('a hook of passwords, whose rejections reveal accounts, is a setting to review', () => {
  const advice = expect.stringMatching(/^AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_ENABLED is true/)
  const hook = { HOOK_PASSWORD_VERIFICATION_ATTEMPT_URI: 'pg-functions://postgres/public/shown' }
  const review = (more: object) => settingsToReview(readConfig({ ...REQUIRED, ...hook, ...more }).config)
  expect(review({ HOOK_PASSWORD_VERIFICATION_ATTEMPT_ENABLED: 'true' })).toContainEqual(advice)
  expect(review({})).not.toContainEqual(advice)
})
