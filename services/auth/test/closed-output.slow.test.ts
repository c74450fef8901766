// Commands whose standard output has lost its reader: the result is lost, so they do not report success.
import { programOf } from '@services/common/testing/run/program'
import { runWithoutReader } from '@services/common/testing/run/without-reader'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { processEnvironment } from './process-environment.ts'
import { startTestService, type TestService } from './service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
  await service.signedIn('reader@example.com', 'correct horse')
  // An export leaves the last minute out.
  await service.deps.pool.query(`update audit_log_entries set created_at = '2020-01-01'`)
})
afterAll(() => service.close())

const run = (line: string) =>
  runWithoutReader(
    [process.execPath, programOf('auth', 'cli'), ...line.split(' ')],
    processEnvironment({ AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_LOG_LEVEL: 'fatal' }),
  )

// One of each way to write: a result alone, notes beside it, after a change, and line by line.
test.for([
  ...['version', 'config check', 'keys generate', 'users create --email other@example.com'],
  ...['users list', 'users export', 'audit export'],
])('%s ends with the code of a broken pipe, without an error', async (line) => {
  const { code, stderr } = await run(line)
  expect(code).toBe(141)
  // Notes beside the result stay.
  expect(stderr).toMatch(/^$|^This is the whole value/)
})

test('one that prints nothing succeeds', async () => {
  expect(await run('messages list')).toEqual({ code: 0, stderr: '' })
})

test('so does the help', async () => {
  expect(await run('--help')).toEqual({ code: 141, stderr: '' })
})
