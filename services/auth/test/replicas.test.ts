// Replicas of one service on one database whose machines' clocks differ, or whose settings do, as they do while a change of
// them rolls out.
import { PATIENCE_MS } from '@services/common/testing/patience'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeIn, startTestService, type TestService } from './service.ts'

const refresh = (service: TestService, refresh_token: string) =>
  service.post('/token?grant_type=refresh_token', { refresh_token })

describe('with clocks apart', () => {
  let exact: TestService
  beforeAll(async () => {
    exact = await startTestService({}, undefined, () => new Date())
  })
  afterAll(() => exact.close())

  const startReplica = (aheadSeconds: number, settings: Record<string, string> = {}) =>
    startTestService(
      { AUTH_DATABASE_URL: exact.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false', ...settings },
      undefined,
      () => new Date(Date.now() + aheadSeconds * 1000),
    )

  test.for([15, -15, 3_600])('two tabs that refresh at replicas %i s apart both stay signed in', async (seconds) => {
    const other = await startReplica(seconds)
    const { refreshToken } = await exact.signedIn()
    const first = await refresh(exact, refreshToken)
    const second = await refresh(other, refreshToken)
    expect(second).toMatchObject({ status: 200, body: { refresh_token: first.body.refresh_token } })
    expect((await refresh(exact, second.body.refresh_token)).status).toBe(200)
    await other.close()
  })

  test('a code, the gap after it and a session mean the same at a replica two hours ahead', async () => {
    const limits = { AUTH_SESSIONS_TIMEBOX: '1h', AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' }
    const other = await startReplica(7_200, limits)
    const { userId } = await exact.signedIn('apart@example.com')
    await exact.post('/otp', { email: 'apart@example.com' })
    const mail = await exact.mailbox.waitFor('apart@example.com', { timeoutMs: PATIENCE_MS })
    expect((await other.post('/otp', { email: 'apart@example.com' })).status).toBe(429)
    const token = codeIn(mail.text)
    const { status, body } = await other.post('/verify', { type: 'email', email: 'apart@example.com', token })
    expect([status, body.user?.id]).toEqual([200, userId])
    expect(body.expires_at - Date.now() / 1000).toBeLessThan(3_660)
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await other.put('/user', { data: { seen: true } }, auth)).status).toBe(200)
    expect((await refresh(other, body.refresh_token)).status).toBe(200)
    await other.close()
  })
})
