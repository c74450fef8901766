import { type Mailbox, startMailbox } from '@services/common/testing/mailbox'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDatabase } from '../test/service.ts'
import { openProcesses, signUp } from '../test/service-process.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
let mailbox: Mailbox
let processes: ReturnType<typeof openProcesses>

beforeEach(async () => {
  ;[database, mailbox] = await Promise.all([createDatabase(), startMailbox()])
  processes = openProcesses({ AUTH_DATABASE_URL: database.url, AUTH_SMTP_PORT: String(mailbox.port) })
})

afterEach(async () => {
  await processes.end()
  await mailbox.close()
  await database.drop()
})

test('a mail accepted by a service that is killed at once is delivered by the next', async () => {
  await mailbox.refuse()
  const first = await processes.serve()
  expect((await signUp(first.base, 'killed@example.com')).status).toBe(200)
  first.child.kill('SIGKILL')
  await first.exit
  await mailbox.accept()
  await processes.serve()
  // The job may have been running when its process died; then it is taken over once its heartbeat is missed.
  await mailbox.waitFor('killed@example.com', { timeoutMs: 25_000 })
}, 40_000)

test('two replicas starting at once on an empty database both serve', async () => {
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  await admin.query('drop schema public cascade; create schema public; drop schema auth_queue cascade')
  await admin.end()
  const replicas = await Promise.all([processes.serve(), processes.serve()])
  for (const [index, { base }] of replicas.entries()) {
    expect((await signUp(base, `replica-${index}@example.com`)).status).toBe(200)
  }
}, 40_000)
