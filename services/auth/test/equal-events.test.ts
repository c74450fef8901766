// Statements with a receiver of events; equal-work.test.ts has those without. A stranger's request sends as many,
// whether or not there is an account. A sign-in sends none beside its own.
import { statementsOf } from '@services/common/testing/database/statements'
import pg from 'pg'
import { expect, vi } from 'vitest'
import { type TestService, test } from './service.ts'
import { addPausedReceiver, storedEvents } from './upstreams/paused-receiver.ts'

/** Statements of the queue, the limits and checks, and those that the dispatcher and the recorder repeat. */
const ELSEWHERE = /auth_queue|pgboss|pg_notify|transaction_read_only|rate_limits|with busy|limit \$\d$/i

/** Statements until all jobs are done. */
async function statementsWithJobs(service: TestService, ask: () => Promise<unknown>): Promise<string[]> {
  const query = vi.spyOn(pg.Client.prototype, 'query')
  try {
    await ask()
    await service.settled()
    const texts = (query.mock.calls as unknown[][]).map(([asked]) =>
      typeof asked === 'string' ? asked : String((asked as { text: string }).text),
    )
    return texts.filter((text) => !ELSEWHERE.test(text.trim()))
  } finally {
    query.mockRestore()
  }
}

test.for<[string, object, 'alone'?]>([
  ['/recover', {}],
  ['/otp', { create_user: false }],
  // The mails differ, and so do the statements of their worker.
  ['/signup', { password: 'correct horse' }, 'alone'],
  ['/token?grant_type=password', { password: 'wrong' }],
])('POST %s sends as many for an account and for nobody', async ([path, body, alone], { service }) => {
  await addPausedReceiver(service)
  const emailOf = (who: string) => `${who}-${path.length}@example.com`
  await service.signedIn(emailOf('confirmed'))
  await service.settled()
  const cost = async (who: string) => {
    service.clock.advance({ seconds: 61 })
    const queue = alone && vi.spyOn(service.deps.queue, 'send').mockResolvedValue()
    const texts = await statementsWithJobs(service, () => service.post(path, { email: emailOf(who), ...body }))
    queue?.mockRestore()
    return texts.length
  }
  expect(await cost('unknown')).toBe(await cost('confirmed'))
})

test('a sign-in, a refresh and GET /user send as many as without a receiver', async ({ service }) => {
  const email = 'as-many@example.com'
  const { auth, refreshToken: refresh_token } = await service.signedIn(email)
  const cost = async () => [
    (await statementsOf(() => service.post('/token?grant_type=password', { email, password: 'correct horse' }))).length,
    (await statementsOf(() => service.post('/token?grant_type=refresh_token', { refresh_token }))).length,
    (await statementsOf(() => service.get('/user', auth))).length,
  ]
  await service.deps.pool.query('delete from webhooks; delete from webhook_deliveries')
  await service.deps.events.refresh()
  const without = await cost()
  expect(without).not.toContain(0)
  await addPausedReceiver(service)
  expect(await cost()).toEqual(without)
  const created = (await storedEvents(service)).filter(
    ({ event, data }) => event === 'session.created' && data.user.email === email,
  )
  expect(created.length).toBeGreaterThan(0)
})
