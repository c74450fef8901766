import { describe, expect } from 'vitest'
import { withTotp } from '../../../test/second-factors.ts'
import { startTestService, type TestService, test } from '../../../test/service.ts'
import { SMS_GATEWAY } from '../../../test/sms-config.ts'

const password = 'correct horse'
const HOME = { 'x-real-address': '192.0.2.1' }
const elsewhere = (index: number) => ({ 'x-real-address': `198.51.100.${index}` })
const BEHIND_PROXY = { AUTH_RATE_LIMIT_HEADER: 'x-real-address', AUTH_RATE_LIMIT_TOKEN_REFRESH: '100000' }
const CURRENT = { AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' }

async function withUser(
  shared: TestService,
  settings: Record<string, string>,
  work: (service: TestService, user: { email: string; auth: { authorization: string } }) => Promise<void>,
) {
  const made = { AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_RATE_LIMIT_OTP: '1000' }
  const service = await shared.onAnotherDay({ ...made, ...settings })
  const email = `${crypto.randomUUID()}@example.com`
  const { body } = await service.post('/signup', { email, password }, HOME)
  await work(service, { email, auth: { authorization: `Bearer ${body.access_token}` } })
  await service.close()
}

describe('strangers who guess at the sign-in', () => {
  test.for<[string, Record<string, string>]>([
    ['behind a proxy', BEHIND_PROXY],
    ['without a trusted address', {}],
  ])('do not keep an owner from changing the password, %s', async ([, settings], { service: shared }) => {
    await withUser(shared, { ...CURRENT, ...settings }, async (service, { email, auth }) => {
      for (let i = 0; i < 25; i++) {
        await service.post('/token?grant_type=password', { email, password: 'guess' }, elsewhere(i))
      }
      const changes = { password: 'a new horse', current_password: password }
      expect((await service.put('/user', changes, { ...auth, ...HOME })).status).toBe(200)
    })
  })
})

test('wrong current passwords are counted by the trusted address of the client', async ({ service: shared }) => {
  await withUser(shared, { ...CURRENT, ...BEHIND_PROXY }, async (service, { auth }) => {
    const change = async (current_password: string, from: object) =>
      (await service.put('/user', { password: 'a new horse', current_password }, { ...auth, ...from })).status
    for (let i = 0; i < 5; i++) expect(await change('guess', elsewhere(1))).toBe(400)
    expect(await change(password, elsewhere(1))).toBe(429)
    expect(await change(password, HOME)).toBe(200)
  })
})

describe('whether a password is the one in use', () => {
  test('is not revealed by a request that is refused for another reason', async ({ service: shared }) => {
    await withUser(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '1' }, async (service, { auth }) => {
      const told = async (guess: string, also: object) => {
        const { status, body } = await service.put('/user', { password: guess, ...also }, auth)
        return [status, body.error_code]
      }
      const alike = async (also: object, ...refusal: unknown[]) => {
        for (const guess of ['a wrong guess', password]) expect(await told(guess, also)).toEqual(refusal)
      }
      await alike({ data: { large: 'x'.repeat(20_000) } }, 422, 'validation_failed')
      await alike({ phone: '18765550100' }, 400, 'phone_provider_disabled')
      expect((await service.put('/user', { email: 'wished@example.com' }, auth)).status).toBe(200)
      // Too soon after that one, and then over the budget of all.
      await alike({ email: 'another@example.com' }, 429, 'over_email_send_rate_limit')
      service.clock.advance({ seconds: 901 })
      await alike({ email: 'another@example.com' }, 429, 'over_email_send_rate_limit')
    })
  })

  test('is not revealed by a request for a number that gets no messages', async ({ service: shared }) => {
    await withUser(shared, { ...SMS_GATEWAY, AUTH_SMS_COUNTRIES: '+49' }, async (service, { auth }) => {
      for (const guess of ['a wrong guess', password]) {
        const answer = await service.put('/user', { password: guess, phone: '18765550100' }, auth)
        expect(answer).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
      }
    })
  })

  test('is counted as a try at it', async () => {
    const own = await startTestService()
    await withUser(own, { AUTH_RATE_LIMIT_FAILED_SIGN_INS: '3' }, async (service, { auth }) => {
      const holder = await service.deps.pool.connect()
      const change = async (guess: string) => (await service.put('/user', { password: guess }, auth)).status
      // A failing transaction reveals a wrong guess and changes nothing.
      await holder.query('alter table audit_log_entries add constraint none check (false) not valid')
      for (let i = 0; i < 3; i++) expect(await change(`guess number ${i}`)).toBe(500)
      expect(await change(password)).toBe(429)
      await holder.query('alter table audit_log_entries drop constraint none')
      holder.release()
      service.clock.advance({ seconds: 1 })
      expect(await change('a new horse')).toBe(200)
    })
    await own.close()
  })

  test('costs nothing where the password does change', async ({ service: shared }) => {
    await withUser(shared, { AUTH_RATE_LIMIT_FAILED_SIGN_INS: '1' }, async (service, { auth }) => {
      for (let i = 0; i < 4; i++) {
        expect((await service.put('/user', { password: `horse number ${i}` }, auth)).status).toBe(200)
      }
    })
  })
})

test('a session that loses its second factor while the password is hashed changes nothing', async ({ service }) => {
  const user = await withTotp(service)
  const { passwords } = service.deps
  const { hash } = passwords
  // Another session removes the factor that raised this one; the user has a second one left.
  passwords.hash = async (...given) => {
    await service.deps.db.updateTable('sessions').set({ aal: 'aal1' }).where('user_id', '=', user.userId).execute()
    return hash(...given)
  }
  const answer = await service.put('/user', { password: 'another horse', data: { changed: true } }, user.auth)
  passwords.hash = hash
  expect(answer).toMatchObject({ status: 401, body: { error_code: 'insufficient_aal' } })
  const { body } = await service.get(`/admin/users/${user.userId}`, service.admin)
  expect(body.user_metadata).not.toHaveProperty('changed')
  expect((await service.post('/token?grant_type=password', { email: user.email, password })).status).toBe(200)
})
