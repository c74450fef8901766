import { expect, test } from 'vitest'
import { startTestService } from '../test/service.ts'
import { deleteExpired } from './housekeeping.ts'

test('inactive sessions go, in bounded rounds of which each goes on where the last one stopped', async () => {
  const service = await startTestService({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' })
  const { auth, userId } = await service.signedIn()
  const insert = (ageDays: number, idleDays: number, count: number) =>
    service.deps.pool.query(
      `insert into sessions (id, user_id, amr, refreshed_at, created_at)
        select gen_random_uuid(), $1, '[]', $2, $3 from generate_series(1, $4)`,
      [userId, daysAgo(idleDays), daysAgo(ageDays), count],
    )
  const daysAgo = (days: number) => new Date(service.clock.now().getTime() - days * 86_400_000)
  const count = async () => (await service.deps.pool.query('select count(*) from sessions')).rows[0].count
  await insert(30, 1, 50_000)
  await insert(20, 10, 1_500)
  const walk = {}
  const round = () => deleteExpired(service.deps, service.deps.log, walk)
  expect(await count()).toBe(51_502)
  await round()
  expect(await count()).toBe(51_502)
  await round()
  expect(await count()).toBe(50_002)
  await insert(40, 40, 1)
  await round()
  expect(await count()).toBe(50_002)
  expect((await service.get('/user', auth)).status).toBe(200)
  await service.close()
}, 30_000)

test('a wish for another address goes two days after its link, a live one stays', async () => {
  const service = await startTestService()
  const old = await service.signedIn('old-wish@example.com')
  await service.put('/user', { email: 'wanted-then@example.com' }, old.auth)
  await service.mailbox.waitFor('wanted-then@example.com')
  // The current address gets one too, and a link lives from when its mail leaves.
  await expect.poll(() => service.deps.queue.depth('mail'), { timeout: 5_000 }).toBe(0)
  service.clock.advance({ seconds: 2 * 86_400 + 3_601 })
  const live = await service.signedIn('live-wish@example.com')
  await service.put('/user', { email: 'wanted-now@example.com' }, live.auth)
  await deleteExpired(service.deps, service.deps.log)
  const wishOf = async (userId: string) => (await service.get(`/admin/users/${userId}`, service.admin)).body.new_email
  expect(await wishOf(old.userId)).toBeUndefined()
  expect(await wishOf(live.userId)).toBe('wanted-now@example.com')
  await service.close()
})
