import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { programOf } from '@services/common/testing/run/program'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { linkPath } from './service.ts'
import { openStage, signUp } from './service-process.ts'

let stage: Awaited<ReturnType<typeof openStage>>

beforeEach(async () => {
  stage = await openStage()
})
afterEach(() => stage.end())

const start = (...args: Parameters<typeof stage.start>) => stage.start(...args)
const serve = (...args: Parameters<typeof stage.serve>) => stage.serve(...args)

type SignInAnswer = Record<'access_token' | 'refresh_token', string>

test('SIGTERM lets requests in flight finish or answers them with 503, and exits 0 despite idle connections', async () => {
  const { base, child, exit } = await serve({ AUTH_PASSWORD_HASH_MEMORY_KIB: '64' })
  const openedAheadOfNeed = connect(Number(new URL(base).port), '127.0.0.1')
  await once(openedAheadOfNeed, 'connect')
  const isClosed = once(openedAheadOfNeed.resume(), 'close')
  const database = new pg.Client({ connectionString: stage.database.url })
  await database.connect()
  await database.query('begin; lock table users in access exclusive mode')
  const requests = Array.from({ length: 10 }, (_, index) => signUp(base, `flight-${index}@example.com`))
  await expect.poll(() => countLockWaits(database)).toBe(10)
  child.kill('SIGTERM')
  // Otherwise it is closed when patience ends, and the requests are cut off with it.
  await isClosed
  await database.query('rollback')
  await database.end()
  for (const { status } of await Promise.all(requests)) expect([200, 503]).toContain(status)
  expect(await exit).toEqual([0, null])
})

test('a service without workers leaves the mail to a worker process', async () => {
  const { base } = await serve({ AUTH_WORKERS_ENABLED: 'false' })
  await signUp(base, 'worker@example.com')
  const worker = start([programOf('auth', 'cli'), 'worker'])
  await stage.mailbox.waitFor('worker@example.com')
  worker.child.kill('SIGTERM')
  expect(await worker.exit).toEqual([0, null])
})

test('an older version starts on a database that a newer one has migrated', async () => {
  const admin = new pg.Client({ connectionString: stage.database.url })
  await admin.connect()
  await admin.query(`insert into schema_migrations (name, timestamp) values ('0099-of-the-future', '2030-01-01')`)
  await admin.end()
  const { base } = await serve()
  expect((await signUp(base, 'rollback@example.com')).status).toBe(200)
})

test('WEB_CONCURRENCY serves from several processes on one port and stops them all', async () => {
  const { base, child, exit, output } = await serve({
    AUTH_WEB_CONCURRENCY: '2',
    AUTH_PORT: String(await findFreePort()),
  })
  expect((await fetch(`${base}/health`)).status).toBe(200)
  await expect.poll(() => output().match(/Server listening/g)?.length).toBe(2)
  child.kill('SIGTERM')
  expect(await exit).toEqual([0, null])
})

describe('a start that cannot work', () => {
  test('names the port that is in use and the variable that changes it', async () => {
    const blocker = createServer().listen(0, '127.0.0.1')
    await once(blocker, 'listening')
    const { port } = blocker.address() as { port: number }
    const alone = start([programOf('auth', 'main')], { AUTH_PORT: String(port) })
    const several = start([programOf('auth', 'main')], { AUTH_PORT: String(port), AUTH_WEB_CONCURRENCY: '2' })
    const scraped = {
      AUTH_METRICS_ENABLED: 'true',
      AUTH_METRICS_EXPORTER: 'prometheus',
      AUTH_OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      AUTH_OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    }
    const metrics = start([programOf('auth', 'main')], scraped)
    const worker = start([programOf('auth', 'cli'), 'worker'], scraped)
    for (const { exit } of [alone, several, metrics, worker]) expect(await exit).toEqual([1, null])
    expect(alone.output()).toContain(`Port ${port} is in use. Set AUTH_PORT to another one.`)
    for (const { output } of [metrics, worker]) {
      expect(output()).toContain('Set AUTH_OTEL_EXPORTER_PROMETHEUS_PORT to another one.')
    }
    blocker.close()
  })

  test('says that a key cannot sign', async () => {
    const publicKey = {
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    }
    const keys = JSON.stringify([{ ...publicKey, kid: 'a', alg: 'ES256', key_ops: ['sign'] }])
    const check = start([programOf('auth', 'cli'), 'config', 'check'], { AUTH_JWT_KEYS: keys })
    const serving = start([programOf('auth', 'cli'), 'serve'], { AUTH_JWT_KEYS: keys })
    expect([await check.exit, await serving.exit]).toEqual([
      [78, null],
      [78, null],
    ])
    expect(check.output()).toContain('AUTH_JWT_KEYS holds a key that cannot sign or verify')
  })

  test('lists every problem by name and never shows a value', async () => {
    const settings = { AUTH_SITE_URL: '', AUTH_JWT_SECRET: 'too-short', AUTH_SMTP_PORT: 'hush', AUTH_JWT_EXP: '-5' }
    const { exit, output } = start([programOf('auth', 'cli'), 'config', 'check'], settings)
    expect(await exit).toEqual([78, null])
    for (const name of ['AUTH_SITE_URL', 'AUTH_JWT_SECRET', 'AUTH_SMTP_PORT', 'AUTH_JWT_EXP']) {
      expect(output()).toContain(name)
    }
    for (const value of ['too-short', 'hush', '-5']) expect(output()).not.toContain(value)
  })
})

test('logs hold no address, no password, no token', async () => {
  const { base, output, child, exit } = await serve({ AUTH_LOG_LEVEL: 'debug' })
  const signIn = async (password: string) => {
    const body = JSON.stringify({ email: 'private@example.com', password })
    return (await fetch(`${base}/token?grant_type=password`, { method: 'POST', body })).json()
  }
  await signUp(base, 'private@example.com')
  const link = linkPath((await stage.mailbox.waitFor('private@example.com')).text)
  await fetch(base + link, { redirect: 'manual' })
  const { access_token: accessToken, refresh_token: refreshToken } = (await signIn('correct horse')) as SignInAnswer
  await fetch(`${base}/user`, { headers: { authorization: `Bearer ${accessToken}` } })
  await fetch(`${base}/verify?type=signup&token=secret-link-token`, { redirect: 'manual' })
  await signIn('wrong secret')
  await stage.mailbox.answer(550)
  await signUp(base, 'mailed@example.com')
  await expect.poll(output).toContain('job failed')
  child.kill('SIGTERM')
  await exit
  expect(output()).toContain('"audit":"login"')
  for (const secret of [
    'private@example.com',
    'mailed@example.com',
    'correct horse',
    'wrong secret',
    accessToken,
    refreshToken,
    new URL(link, base).searchParams.get('token') as string,
    'secret-link-token',
  ]) {
    expect(output()).not.toContain(secret)
  }
})
