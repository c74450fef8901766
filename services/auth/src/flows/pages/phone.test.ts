import { expect, onTestFinished, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'
import { openPage, send } from './testing/pages.ts'

const PHONE = '4915177770001'
const FACTOR = '4915177770002'

test('a phone signs in by a code, and another one is the second factor', async () => {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_HOSTED_PAGES_ENABLED: 'true',
    AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
    AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_TEMPLATE: 'Code {{ .Code }}',
    AUTH_MFA_PHONE_TEMPLATE: 'Code {{ .Code }}',
  })
  onTestFinished(async () => {
    await service.close()
    await gateways.close()
  })
  const codeFor = async (phone: string) => (await gateways.waitFor(phone)).text.replace('Code ', '')
  await userWithPhones(service, () => codeFor(FACTOR))

  const browser = service.otherBrowser()
  const start = await openPage(browser, '/ui/sign-in')
  const password = await send(browser, start, { address: `+${PHONE}` })
  const code = await send(browser, password, {}, { press: 'Send me a code instead' })
  expect(code.text).toContain('a text message with a code is on its way')
  const factor = await send(browser, code, { code: await codeFor(PHONE) })
  expect(factor.text).toContain('the phone number that ends in 02')
  service.clock.advance({ seconds: 120 })
  const sent = await send(browser, factor, {}, { press: 'Send a code' })
  await service.settled()
  const end = await send(browser, sent, { code: await codeFor(FACTOR) })
  expect(end.location).toMatch(/^https:\/\/site\.example#access_token=/)
})

/** A user with a number to sign in, and a proven factor at another one. */
async function userWithPhones(service: TestService, factorCode: () => Promise<string>): Promise<void> {
  const body = { phone: PHONE, password: 'correct horse', phone_confirm: true }
  await service.post('/admin/users', body, service.admin)
  const { body: session } = await service.post('/token?grant_type=password', body)
  const auth = { authorization: `Bearer ${session.access_token}` }
  const { body: factor } = await service.post('/factors', { factor_type: 'phone', phone: `+${FACTOR}` }, auth)
  const { body: opened } = await service.post(`/factors/${factor.id}/challenge`, {}, auth)
  const proof = { challenge_id: opened.id, code: await factorCode() }
  expect(await service.post(`/factors/${factor.id}/verify`, proof, auth)).toMatchObject({ status: 200 })
}
