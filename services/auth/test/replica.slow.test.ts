// DATABASE_REPLICA_URL with a real standby: lists come from it, and show what their caller wrote; nothing else reads
// from it.
import { type PostgresPair, startPostgresPair } from '@services/common/testing/database/postgres-pair'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { auth } from './command-line.ts'
import { migrateDatabase, startTestService, type TestService } from './service.ts'

let pair: PostgresPair
let service: TestService

const settings = () => ({
  AUTH_DATABASE_URL: pair.primary.url,
  AUTH_DATABASE_REPLICA_URL: pair.url,
  AUTH_DATABASE_REPLICA_MAX_LAG: '10m',
})

beforeEach(async () => {
  pair ??= await startPostgresPair('auth', migrateDatabase)
  pair.leadTo(pair.standby)
  service ??= await startTestService(settings())
})
afterAll(async () => {
  await service.close()
  await pair.end()
})

const list = (path: string) => service.get(path, service.admin)

test.for([
  ['/admin/users', 'users'],
  ['/admin/users?limit=10', 'users'],
  ['/admin/audit', 'audit_log_entries'],
  ['/admin/messages', 'messages'],
] as const)('%s is read from the replica', async ([path, table]) => {
  await pair.expectScans(table, async () => expect((await list(path)).status).toBe(200))
})

test('users export reads from the replica', async () => {
  const { userId } = await service.signedIn()
  await pair.endReaders()
  const before = await pair.countScans('identities')
  const { code, stdout } = await auth(['users', 'export'], settings())
  expect([code, stdout]).toEqual([0, expect.stringContaining(userId)])
  expect(await pair.countScans('identities')).toBeGreaterThan(before)
})

test('audit export reads from the replica, and from the primary what a late one lacks', async () => {
  const add = async () => {
    const { rows } = await service.deps.pool.query(`insert into audit_log_entries (id, payload, created_at)
      values (gen_random_uuid(), '{}', '2020-01-01') returning id`)
    return rows[0].id
  }
  const exported = async () => (await auth(['audit', 'export', '--before', '2020-01-02'], settings())).stdout
  const early = await add()
  await pair.expectScans('audit_log_entries', async () => expect(await exported()).toContain(early))
  await pair.pauseReplay()
  onTestFinished(pair.resumeReplay)
  const late = await add()
  expect(await exported()).toContain(late)
})

test('sign-in, refresh and GET /user never read from the replica', async () => {
  await pair.endReaders()
  const before = await pair.countScans('sessions')
  const { refreshToken, auth: session } = await service.signedIn()
  await pair.expectScans('users', () => list('/admin/users'))
  expect((await service.get('/user', session)).status).toBe(200)
  expect((await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status).toBe(200)
  await service.signedIn()
  await pair.expectScans('users', () => list('/admin/users'))
  await pair.endReaders()
  expect(await pair.countScans('sessions')).toBe(before)
})

test('a list shows what its caller wrote just before, through any process', async () => {
  const { userId } = await service.signedIn()
  const other = await startTestService({ AUTH_DATABASE_URL: pair.primary.url, AUTH_WORKERS_ENABLED: 'false' })
  onTestFinished(() => other.close())
  await pair.expectScans('users', () => list('/admin/users'))
  for (let number = 0; number < 20; number++) {
    const writer = number % 2 ? other : service
    const email = `written-${number}@example.com`
    expect((await writer.put(`/admin/users/${userId}`, { email }, service.admin)).status).toBe(200)
    expect((await list(`/admin/users?filter=${email}`)).body.users).toMatchObject([{ id: userId, email }])
  }
})

test('the primary answers a list whose writes a late replica lacks', async () => {
  await pair.pauseReplay()
  onTestFinished(pair.resumeReplay)
  const { userId } = await service.signedIn('late@example.com')
  expect((await list('/admin/users?filter=late@example.com')).body.users).toMatchObject([{ id: userId }])
})

test('lists are answered while the replica disconnects, is unreachable and returns', async () => {
  await pair.expectScans('users', () => list('/admin/users'))
  pair.leadTo({ url: 'postgres://127.0.0.1:1' })
  const answers = Array.from({ length: 10 }, () => list('/admin/users'))
  await pair.endReaders()
  for (let number = 0; number < 10; number++) answers.push(list('/admin/audit'))
  expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]))
  pair.leadTo(pair.standby)
  await pair.expectScans('users', () => list('/admin/users'))
})
