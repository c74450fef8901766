// Processes of the service behind PgBouncer in transaction mode. Requirements: packages/common/src/database/pooler.ts.
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { startPooledRole } from '@services/common/testing/database/pgbouncer'
import { programOf } from '@services/common/testing/run/program'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openStage, signUp } from './service-process.ts'

describe('behind PgBouncer in transaction mode', { tags: 'pgbouncer' }, () => {
  let stage: Awaited<ReturnType<typeof openStage>>
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.end())

  async function startPooler(settings: Record<string, number> = {}) {
    const pooled = await startPooledRole(stage.database.url, settings)
    onTestFinished(pooled.stop)
    return { AUTH_DATABASE_URL: pooled.url, AUTH_DATABASE_DIRECT_URL: pooled.directUrl }
  }

  test('the service signs up, delivers mail, and cancels the statement of a request that took too long', async () => {
    const settings = { ...(await startPooler({ default_pool_size: 3 })), AUTH_DATABASE_POOLER: 'transaction' }
    const { base, output } = await stage.serve(settings)
    const impatient = await stage.serve({ ...settings, AUTH_API_MAX_REQUEST_DURATION: '2' })
    expect((await signUp(base, 'pooled@example.com')).status).toBe(200)
    await stage.mailbox.waitFor('pooled@example.com')
    const beside = new pg.Client({ connectionString: stage.database.url })
    await beside.connect()
    await beside.query('begin; lock table users in access exclusive mode')
    expect((await signUp(impatient.base, 'late@example.com')).status).toBe(504)
    await expect.poll(() => countLockWaits(beside)).toBe(0)
    await beside.query('rollback')
    await beside.end()
    expect((await signUp(base, 'next@example.com')).status).toBe(200)
    expect(output()).not.toContain('"level":"error"')
  })

  test.each([
    ['serve', programOf('auth', 'main'), []],
    ['worker', programOf('auth', 'cli'), ['worker']],
    ['users list', programOf('auth', 'cli'), ['users', 'list']],
  ])('%s refuses one that does not track statements, with its setting and exit code 78', async (_, program, args) => {
    const { AUTH_DATABASE_URL } = await startPooler({ max_prepared_statements: 0 })
    const { output, exit } = stage.start([program, ...args], { AUTH_DATABASE_URL, AUTH_DATABASE_POOLER: 'transaction' })
    expect(await exit).toEqual([78, null])
    expect(output()).toContain('set max_prepared_statements of PgBouncer (1.21 or later) to 200')
  })

  test('a service that does not expect it exits with 78 at once, and names the setting', async () => {
    const { output, exit } = stage.start([programOf('auth', 'main')], await startPooler())
    expect(await exit).toEqual([78, null])
    expect(output()).toContain('Set DATABASE_POOLER=transaction')
  })
})
