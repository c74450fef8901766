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
})
afterAll(() => service.close())

const run = (line: string) =>
  runWithoutReader(
    [process.execPath, programOf('auth', 'cli'), ...line.split(' ')],
    processEnvironment({ AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_LOG_LEVEL: 'fatal' }),
  )

test.for([
  ...['version', 'config check', 'config table', 'migrate', 'migrate status', 'keys generate', 'tokens admin'],
  ...['users list', 'users show reader@example.com', 'users export'],
  ...['users create --email other@example.com', 'users ban reader@example.com --for 1h', 'mail preview recovery'],
])('%s ends with the code of a broken pipe, without an error', async (line) => {
  const { code, stderr } = await run(line)
  expect(code).toBe(141)
  // Notes beside the result stay.
  expect(stderr).toMatch(/^$|^This is the whole value|^It may do everything/)
})

test('one that prints nothing succeeds', async () => {
  expect(await run('messages list')).toEqual({ code: 0, stderr: '' })
})

// One function prints all help, whatever the command.
test.for(['users export --help', '--help'])('so does %s', async (line) => {
  expect(await run(line)).toEqual({ code: 141, stderr: '' })
})
