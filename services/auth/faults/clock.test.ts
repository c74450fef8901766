import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fragmentOf, linkPath, startTestService, type TestService } from '../test/service.ts'

const report = openFaultReport()
let service: TestService

beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

test.for([
  ['an hour and a minute', 3_660],
  ['a day', 86_400],
  ['a year', 365 * 86_400],
] as const)('a clock that jumps ahead by %s ends what has its time, and no session', async ([jump, seconds]) => {
  const people = []
  for (let number = 0; number < 5; number++) people.push(await service.signedIn())
  const email = `waiting-${seconds}@example.com`
  await service.post('/signup', { email, password: 'correct horse' })
  const link = linkPath((await service.mailbox.waitFor(email)).text)
  service.clock.advance({ seconds })

  const statuses = { tokens: 0, refreshed: 0 }
  for (const { auth, refreshToken } of people) {
    if ((await service.get('/user', auth)).status === 403) statuses.tokens++
    const { status, body } = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
    const user = await service.get('/user', { authorization: `Bearer ${body.access_token}` })
    if (status === 200 && user.status === 200) statuses.refreshed++
  }
  expect(statuses).toEqual({ tokens: 5, refreshed: 5 })
  const followed = await service.get(link)
  expect({ status: followed.status, ...fragmentOf(followed) }).toMatchObject({ status: 303, error_code: 'otp_expired' })
  // A new sign-in works as before.
  const after = await service.signedIn()
  expect((await service.get('/user', after.auth)).status).toBe(200)
  report(`clock ahead by ${jump}`, {
    'access tokens expired': statuses.tokens,
    'sessions lost': 5 - statuses.refreshed,
  })
})
