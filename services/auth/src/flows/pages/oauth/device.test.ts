import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { beginDevice } from '../../../core/oauth-server/devices/begin-device.ts'
import { visitor } from './testing/visitor.ts'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_OAUTH_SERVER_ENABLED: 'true',
      AUTH_RATE_LIMIT_HEADER: 'x-real-ip',
      AUTH_OAUTH_SERVER_SCOPES: JSON.stringify([
        { name: 'films', description: 'Play films', descriptions: { de: 'Filme abspielen' } },
      ]),
    }),
  ),
})

/** A device that waits, and a browser that is signed in. */
async function waiting(service: TestService, { language }: { language?: string } = {}) {
  const { body: client } = await service.post(
    '/admin/oauth/clients',
    { client_name: 'Television <b>', client_type: 'public', grant_types: [DEVICE_GRANT] },
    service.admin,
  )
  const origin = { ip: '203.0.113.9', userAgent: 'Film/1.0 (TV)' }
  const request = { scopes: ['email', 'films'], resources: [] }
  const device = await beginDevice(service.deps, { id: client.client_id }, request, origin)
  const headers = { 'x-real-ip': '198.51.100.7', ...(language !== undefined && { 'accept-language': language }) }
  return { ...device, ...(await visitor(service, headers)) }
}

const stateOf = async (service: TestService, userCode: string) =>
  service.deps.db
    .selectFrom('oauth_device_codes')
    .select(['status', 'user_id'])
    .where('user_code', '=', userCode.replace('-', ''))
    .executeTakeFirst()

test('a link with the code leads through the sign-in to the application, its scopes and the place of the device', async ({
  service,
}) => {
  const { verification_uri_complete: link, user_code, signIn, open, press, userId } = await waiting(service)
  const page = await signIn(await open(link.replace('https://auth.example', '')))
  expect(page.title).toBe('Connect a device')
  for (const text of [
    user_code,
    'Television &lt;b&gt;',
    'See your email address',
    'Play films',
    '203.0.113.9',
    'Film/1.0 (TV)',
  ]) {
    expect(page.text).toContain(text)
  }
  expect(page.text).toContain('Allow this only if the device is before you')
  expect(await stateOf(service, user_code)).toMatchObject({ status: 'pending' })
  const done = await press(page, { answer: 'allow' })
  expect(done.news).toBe('The device is connected. You can go back to it.')
  expect(await stateOf(service, user_code)).toMatchObject({ status: 'approved', user_id: userId })
  // A second press of the same button.
  expect((await press(page, { answer: 'allow' })).news).toBe(done.news)
  expect((await press(page, { answer: 'deny' })).text).toContain('This code is wrong, has expired or is used already.')
  expect(await stateOf(service, user_code)).toMatchObject({ status: 'approved' })
})

test('a code counts in any case, with or without a hyphen, and a denial is final; the page is in the language of the reader', async ({
  service,
}) => {
  const { user_code, signIn, open, press } = await waiting(service, { language: 'de' })
  const entry = await signIn(await open('/ui/device'))
  expect(entry.text).toContain('Gib den Code ein')
  const page = await press(entry, { code: ` ${user_code.replace('-', '').toLowerCase()} ` })
  expect(page.text).toContain('Filme abspielen')
  expect((await press(page, { answer: 'deny' })).news).toBe('Dem Gerät wurde der Zugriff verweigert.')
  expect(await stateOf(service, user_code)).toMatchObject({ status: 'denied' })
})

test('unknown, expired and answered codes get one answer, and after five in a minute no code is read, not even a right one', async ({
  service,
}) => {
  const { user_code: expired, signIn, open, press } = await waiting(service)
  const entry = await signIn(await open('/ui/device'))
  service.clock.advance({ seconds: 600 })
  const { user_code: live } = await waiting(service)
  const wrong = async (code: string) => {
    const page = await press(entry, { code })
    expect(page.text).toContain('This code is wrong, has expired or is used already.')
    return page.text.replaceAll(/value="[^"]*"/g, '')
  }
  const first = await wrong('BCDF-GHJK')
  expect(await wrong(expired)).toBe(first)
  expect(await wrong('AEIO')).toBe(first)
  await wrong('BCDF-GHJL')
  await wrong('BCDF-GHJM')
  const refused = await press(entry, { code: live })
  expect([refused.status, refused.problem]).toEqual([429, expect.stringMatching(/^Too many attempts./)])
  service.clock.advance({ seconds: 60 })
  expect((await press(entry, { code: live })).text).toContain('See your email address')
})
