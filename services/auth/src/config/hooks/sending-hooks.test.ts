import { describe, expect, test } from 'vitest'
import { readConfig } from '../../config.ts'
import { settingsToReview } from '../review.ts'

const NEEDED = {
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
  AUTH_DATABASE_URL: 'postgres://localhost/auth',
  AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
}
const hook = (point: 'EMAIL' | 'SMS', more: Record<string, string> = {}) =>
  Object.fromEntries(
    Object.entries({ ENABLED: 'true', URI: 'http://localhost:1/', UNSIGNED: 'true', ...more }).map(([name, value]) => [
      `AUTH_HOOK_SEND_${point}_${name}`,
      value,
    ]),
  )
const read = (settings: Record<string, string> = {}) => readConfig({ ...NEEDED, ...settings }).config

describe('a hook that sends mail', () => {
  test('makes a mail server unnecessary', () => {
    expect(() => read()).toThrow('AUTH_SMTP_HOST is required')
    expect(read(hook('EMAIL')).mail).toMatchObject({ byHook: true, waitsForHook: false })
  })

  test('has no limit of mails to all users but a set one, which one disabled leaves as it is', () => {
    const smtp = { AUTH_SMTP_HOST: 'localhost', AUTH_SMTP_PORT: '25', AUTH_SMTP_ADMIN_EMAIL: 'a@site.example' }
    const anHour = (points: number) => ({ points, seconds: 3600 })
    expect(read(smtp).limits.mailsSent).toEqual(anHour(360))
    expect(read({ ...smtp, ...hook('EMAIL', { ENABLED: 'false' }) }).limits.mailsSent).toEqual(anHour(360))
    expect(read(hook('EMAIL')).limits.mailsSent).toBeUndefined()
    expect(read({ ...hook('EMAIL'), AUTH_RATE_LIMIT_EMAIL_SENT: '360' }).limits.mailsSent).toEqual(anHour(360))
  })
})

test('a hook that sends SMS makes numbers a way to sign in, without a gateway, and notices need none of its texts', () => {
  const { signup } = read(hook('EMAIL'))
  expect(signup.phone).toBe(false)
  const byHook = read({ ...hook('EMAIL'), ...hook('SMS'), AUTH_SMS_ACCOUNT_EXISTS_ENABLED: 'true' })
  expect([byHook.signup.phone, byHook.sms.byHook]).toEqual([true, true])
})

test.for(['EMAIL', 'SMS'] as const)('a review names requests that wait for the hook of %s', (point) => {
  const review = (more: Record<string, string>) => settingsToReview(read({ ...hook('EMAIL'), ...hook(point, more) }))
  const advice = expect.stringContaining('reveal which addresses have accounts')
  expect(review({ SYNC: 'true' })).toContainEqual(advice)
  expect(review({})).not.toContainEqual(advice)
})
