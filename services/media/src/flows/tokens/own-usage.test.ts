import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { addClips } from '../clips/testing/many-clips.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    ...{ MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUOTA_BYTES: '1000000', MEDIA_DAILY_BYTES: '2000000' },
  })
})
afterAll(() => service.close())

const usageOf = async (token: string) => (await service.get('/usage', { token })).body.success

test("a token's usage is that of its own clips, with the limits of the service", async () => {
  const { token } = await service.newToken()
  const none = { clips: 0, bytes: 0 }
  expect(await usageOf(token)).toEqual({
    stored: { ...none, reserved_bytes: 0, limit_bytes: 1_000_000 },
    today: { ...none, limit_bytes: 2_000_000 },
  })
  await addClips(service, 4, { token })
  const { stored, today } = await usageOf(token)
  expect(stored).toMatchObject({ clips: 4, reserved_bytes: 0 })
  expect(stored.bytes).toBeGreaterThan(0)
  // Three uploads; the rows of the others were added by hand.
  expect(today).toMatchObject({ clips: 3, bytes: expect.any(Number) })
  service.clock.advance({ seconds: 86_400 })
  expect((await usageOf(token)).today).toMatchObject(none)
  expect((await usageOf(service.token)).stored.clips).toBe(0)
})

test('limits of its own come before those of the service', async () => {
  const { token } = await service.newToken({ limits: { quota_bytes: 5, daily_bytes: 6 } })
  const { stored, today } = await usageOf(token)
  expect([stored.limit_bytes, today.limit_bytes]).toEqual([5, 6])
})

test('usage needs the scope read', async () => {
  const { token } = await service.newToken({ scopes: ['write', 'delete'] })
  const { status, body } = await service.get('/usage', { token })
  expect([status, body.error.details]).toEqual([403, { scope: 'read' }])
  expect((await service.get('/usage')).status).toBe(401)
})
