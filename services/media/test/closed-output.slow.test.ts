// Commands whose standard output has lost its reader: the result is lost, so they do not report success.
import { programOf } from '@services/common/testing/run/program'
import { runWithoutReader } from '@services/common/testing/run/without-reader'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { idIn, settingsOf, startTestService, type TestService } from './service.ts'

let service: TestService
let id: string
beforeAll(async () => {
  service = await startTestService()
  id = idIn(await service.ready(gif(16, 16, [{ delay: 10 }])))
})
afterAll(() => service.close())

const run = (line: string) =>
  runWithoutReader([process.execPath, programOf('media', 'cli'), ...line.split(' ')], {
    ...settingsOf(service.deps.config.database.url, service.blobsDir),
  })

// One of each way to write: a result alone, notes beside it, of a clip, after a change, and line by line.
test.for(['version', 'tokens create', 'clips show {clip}', 'clips delete {clip} --yes', 'blobs check'])(
  '%s ends with the code of a broken pipe, without an error',
  async (line) => {
    const { code, stderr } = await run(line.replace('{clip}', id))
    expect(code).toBe(141)
    // Notes beside the result stay.
    expect(stderr).toMatch(/^$|^Token \S+ \(unnamed\) may .*\n$/)
  },
)

test('so does the help', async () => {
  expect(await run('--help')).toEqual({ code: 141, stderr: '' })
})
