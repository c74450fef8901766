import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStage, signUp } from '../test/service-process.ts'

let stage: Awaited<ReturnType<typeof openStage>>

beforeEach(async () => {
  stage = await openStage()
})
afterEach(() => stage.end())

test('a mail accepted by a service that is killed at once is delivered by the next', async () => {
  await stage.mailbox.refuse()
  const first = await stage.serve()
  expect((await signUp(first.base, 'killed@example.com')).status).toBe(200)
  first.child.kill('SIGKILL')
  await first.exit
  await stage.mailbox.accept()
  await stage.serve()
  // The job may have been running when its process died; another worker takes it over once its heartbeat is missing.
  await stage.mailbox.waitFor('killed@example.com', { timeoutMs: 25_000 })
}, 40_000)

test('two replicas starting at once on an empty database both serve', async () => {
  const admin = new pg.Client({ connectionString: stage.database.url })
  await admin.connect()
  await admin.query('drop schema public cascade; create schema public; drop schema auth_queue cascade')
  await admin.end()
  const replicas = await Promise.all([stage.serve(), stage.serve()])
  for (const [index, { base }] of replicas.entries()) {
    expect((await signUp(base, `replica-${index}@example.com`)).status).toBe(200)
  }
}, 40_000)
