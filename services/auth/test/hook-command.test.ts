// `hook test`: each point is asked a question of the service's own shape, and a failure is explained.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOOK_NAMES, HOOK_POINTS, type HookPoint } from '../src/adapters/hooks/points.ts'
import { authHere } from './command-line.ts'
import { startTestService } from './service.ts'
import { answers, HOOK_SECRET, type HookReceiver, type Respond, startReceiver } from './upstreams/hook-receiver.ts'

let receiver: HookReceiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.close())

const settingsOf = (point: HookPoint, more: Record<string, string> = {}) =>
  Object.fromEntries(
    Object.entries({
      ...{ ENABLED: 'true', URI: `${receiver.url}/hook`, SECRETS: `v1,${HOOK_SECRET}`, TIMEOUT: '15s' },
      ...more,
    }).map(([name, value]) => [`AUTH_HOOK_${HOOK_POINTS[point]}_${name}`, value]),
  )

async function hookTest(line: string, settings: Record<string, string>, respond: Respond = answers({})) {
  receiver.answer(respond)
  receiver.forget()
  return authHere(['hook', 'test', ...line.split(' ')], settings)
}

const MEMBERS: Record<HookPoint, string[]> = {
  'before-user-created': ['user'],
  'after-user-created': ['user'],
  'customize-access-token': ['user_id', 'claims', 'authentication_method'],
  'send-email': ['user', 'email_data'],
  'send-sms': ['user', 'sms'],
  'password-verification': ['user_id', 'valid'],
  'mfa-verification': ['user_id', 'factor_id', 'factor_type', 'valid'],
}

// The database of these commands cannot be reached: a made-up user needs none.
test.for(HOOK_NAMES)('%s is asked about a made-up user, and its answer is shown', async (point) => {
  const asked = await hookTest(`${point} --json`, settingsOf(point))
  expect(asked).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(asked.stdout)).toMatchObject({ point, uri: `${receiver.url}/hook`, result: 'answered', answer: {} })
  const { id, metadata, ...payload } = receiver.questions()[0] as unknown as Record<string, object>
  expect(metadata).toMatchObject({ name: point, uuid: id })
  expect(Object.keys(payload)).toEqual(MEMBERS[point])
})

test('a mail of another kind to a user of the database is asked for by name of the settings', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  await service.signedIn('chosen@example.com')
  const settings = { ...settingsOf('send-email'), AUTH_DATABASE_URL: service.deps.config.database.url }
  expect(await hookTest('SEND_EMAIL --user chosen@example.com --kind recovery', settings)).toMatchObject({ code: 0 })
  expect(receiver.questions()).toMatchObject([
    {
      user: { email: 'chosen@example.com', identities: [{ provider: 'email' }] },
      email_data: { email_action_type: 'recovery', recipient: 'chosen@example.com' },
    },
  ])
  await service.close()
})

test('a refusal is an answer', async () => {
  const refuses = answers({ error: { http_code: 403, message: 'not from this domain' } })
  const { code, stdout } = await hookTest('before-user-created', settingsOf('before-user-created'), refuses)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^refused with status 403: not from this domain\n/),
  })
})

describe('a failure is explained', () => {
  const plain: Respond = (response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')
  test.for<[string, Respond, string, string]>([
    ['a wrong signature', answers({}, 401), 'requires authorization', 'secret'],
    ['a payload that is refused', answers({}, 400), 'Invalid payload', 'signature'],
    ['an answer that is no JSON', plain, 'text/plain', '204'],
    ['an answer that is no object', answers([]), 'unmarshaling', '{}'],
    ['a path that does not exist', answers({}, 404), '404', 'path'],
    ['a redirect', answers({}, 302, { location: '/' }), '302', 'Redirects'],
    ['an unusual status', answers({}, 201), '201', '204'],
    ['a busy receiver', answers({}, 503), 'unavailable', 'busy'],
    ['one that hangs', () => {}, 'maximum time', 'firewall'],
    ['one that breaks off', (response) => void response.destroy(), 'maximum retries', 'reached'],
  ])('%s', async ([, respond, problem, remedy]) => {
    const settings = settingsOf('send-email', { ATTEMPTS: '1', ...(problem === 'maximum time' && { TIMEOUT: '1s' }) })
    const { code, stdout, stderr } = await hookTest('send-email', settings, respond)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(new RegExp(`${problem}.*\n.*${remedy}`))
    expect(stderr).not.toContain('    at ')
  })

  test.for([
    ['nothing', 'needs POINT', 64],
    ['send-fax', 'there is no point "send-fax"', 64],
    ['send-email --kind greeting', '--kind must be one of', 64],
    ['send-sms', 'AUTH_HOOK_SEND_SMS_ENABLED is not true', 1],
  ] as const)('%s', async ([line, words, code]) => {
    const asked = line === 'nothing' ? authHere(['hook', 'test']) : hookTest(line, settingsOf('send-email'))
    expect(await asked).toMatchObject({ code, stderr: expect.stringContaining(words) })
  })
})
