import { expect, onTestFinished } from 'vitest'
import { signInAgain, totpCode, withTotp } from '../../../test/second-factors.ts'
import { createDatabase, linkPath, queryOf, startTestService, type TestService, test } from '../../../test/service.ts'
import { beginOf, createStatistics, DAY_MS, HOUR_MS, type Statistics } from '../../core/statistics/statistics.ts'
import { deleteExpired } from '../../housekeeping.ts'

const password = 'correct horse'
const NO_MESSAGES = { sent: 0, failed: 0, dropped: 0 }
const NOTHING = {
  ...{ sign_ups: {}, sign_ins: {}, failures: {} },
  messages: { mail: NO_MESSAGES, sms: NO_MESSAGES },
  queue: { jobs: 0, oldest_seconds: 0 },
}

const signIn = (service: TestService, email: string, typed = password) =>
  service.post('/token?grant_type=password', { email, password: typed })

async function statisticsOf(service: TestService, query = '') {
  const { status, body } = await service.get(`/admin/statistics${query}`, service.admin)
  expect(status).toBe(200)
  return body
}

test('sign-ups, sign-ins by way, refusals and messages outlive a restart, without an audit log', async () => {
  const database = await createDatabase()
  onTestFinished(database.drop)
  const settings = {
    AUTH_DATABASE_URL: database.url,
    AUTH_CONSOLE_ENABLED: 'true',
    AUTH_HOSTED_PAGES_ENABLED: 'true',
    AUTH_AUDIT_LOG_DISABLE_POSTGRES: 'true',
  }
  const service = await startTestService(settings)
  const { clock } = service
  const now = clock.now()

  // A link and the exchange of its code are one sign-in.
  const pkce = { code_challenge: 'v'.repeat(43), code_challenge_method: 'plain' }
  await service.post('/signup', { email: 'counted@example.com', password, ...pkce })
  const { text } = await service.mailbox.waitFor('counted@example.com')
  const { code: auth_code } = queryOf(await service.get(linkPath(text)))
  const exchange = { auth_code, code_verifier: 'v'.repeat(43) }
  expect((await service.post('/token?grant_type=pkce', exchange)).status).toBe(200)
  const { email, totp } = await withTotp(service)
  const user = await signInAgain(service, email)
  for (let i = 0; i < 2; i++) expect((await signIn(service, 'counted@example.com', 'wrong horse')).status).toBe(400)
  expect((await signIn(service, 'unknown@example.com')).status).toBe(400)
  const { id: challenge_id } = (await service.post(`/factors/${totp.id}/challenge`, {}, user.auth)).body
  const code = totpCode(totp.secret, now, 100)
  expect((await service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, user.auth)).status).toBe(422)
  expect((await service.get('/admin/statistics', user.auth)).status).toBe(403)
  await service.settled()
  const counts = {
    ...NOTHING,
    sign_ups: { password: 1 },
    sign_ins: { otp: 1, password: 2 },
    failures: {
      admin: { not_admin: 1 },
      password: { invalid_credentials: 3 },
      totp: { mfa_verification_failed: 1 },
    },
    messages: { mail: { ...NO_MESSAGES, sent: 1 }, sms: NO_MESSAGES },
  }
  const { hours, days } = await statisticsOf(service)
  expect([hours.length, days.length]).toEqual([24, 30])
  expect(hours.at(-1)).toEqual({ from: beginOf(HOUR_MS, now).toISOString(), ...counts })
  expect(days.at(-1)).toEqual({ from: beginOf(DAY_MS, now).toISOString(), ...counts })
  expect(hours[0]).toEqual({ ...NOTHING, from: new Date(beginOf(HOUR_MS, now).getTime() - 23 * HOUR_MS).toISOString() })
  await signIn(service, email)
  await service.close()

  const restarted = await startTestService(settings, clock)
  counts.sign_ins.password += 1
  expect((await statisticsOf(restarted)).hours.at(-1)).toMatchObject(counts)
  clock.advance({ seconds: 3 * 86_400 })
  await deleteExpired(restarted.deps, restarted.deps.log)
  const later = await statisticsOf(restarted, '?days=4')
  expect(later.hours.map(({ sign_ups }: typeof NOTHING) => sign_ups)).toEqual(Array(24).fill({}))
  expect(later.days).toMatchObject([counts, NOTHING, NOTHING, NOTHING])
  clock.advance({ seconds: 394 * 86_400 })
  await deleteExpired(restarted.deps, restarted.deps.log)
  expect((await restarted.deps.pool.query('select from daily_counts')).rowCount).toBe(0)
  for (const wrong of ['0', '397', 'x']) {
    expect((await restarted.get(`/admin/statistics?days=${wrong}`, restarted.admin)).status).toBe(400)
  }
  await restarted.close()
})

test('replicas count each event once, also when a write fails or is repeated, and when both add hours to days', async ({
  service,
}) => {
  const { clock, deps, ...on } = await service.with({
    AUTH_CONSOLE_ENABLED: 'true',
    AUTH_HOSTED_PAGES_ENABLED: 'true',
  })
  const [one, other] = [createStatistics(deps), createStatistics(deps)] as Statistics[]
  const rename = (from: string, to: string) => deps.pool.query(`alter table ${from} rename to ${to}`)
  for (const process of [one, one, other]) process?.count('sign_up', 'phone', 'ok')
  await rename('hourly_counts', 'away')
  await expect(one?.write()).rejects.toThrow('hourly_counts')
  await rename('away', 'hourly_counts')
  await Promise.all([one, one, other].map((process) => process?.write()))
  one?.count('sign_up', 'phone', 'ok')
  await Promise.all([one, other].map((process) => process?.write()))
  const { hours } = (await on.get('/admin/statistics', on.admin)).body
  expect(hours.at(-1).sign_ups).toEqual({ phone: 4 })
  clock.advance({ seconds: 3 * 86_400 })
  await Promise.all([1, 2].map(() => deleteExpired(deps, deps.log)))
  const { days } = (await on.get('/admin/statistics?days=4', on.admin)).body
  expect(days.map(({ sign_ups }: typeof NOTHING) => sign_ups)).toEqual([{ phone: 4 }, {}, {}, {}])
})

test('without the console nothing is counted, and earlier counts expire all the same', async ({ service }) => {
  await service.signedIn()
  expect(service.deps.statistics).toBeUndefined()
  const { status, body } = await service.get('/admin/statistics', service.admin)
  expect([status, body.error_code, body.msg]).toEqual([404, 'feature_disabled', 'Statistics are disabled'])
  const { pool, log, now } = service.deps
  const day = beginOf(DAY_MS, new Date(now().getTime() - 3 * DAY_MS))
  const earlier = "'sign_up', 'earlier', 'ok', 1"
  await pool.query(
    `insert into hourly_counts (hour, event, method, result, count, process) values ($1, ${earlier}, $2)`,
    [day, service.deps.newId()],
  )
  await pool.query(`insert into daily_counts (day, event, method, result, count) values ('2020-01-01', ${earlier})`)
  await deleteExpired(service.deps, log)
  const left = await pool.query(`select hour::text as begin from hourly_counts where method = 'earlier'
    union all select day::text from daily_counts where method = 'earlier'`)
  expect(left.rows).toEqual([{ begin: day.toISOString().slice(0, 10) }])
})
