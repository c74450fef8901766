// Commands whose standard output has lost its reader: the result is lost, so they do not report success.
import { programOf } from '@services/common/testing/run/program'
import { runWithoutReader } from '@services/common/testing/run/without-reader'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commands } from '../src/commands.ts'
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
    MEDIA_VARIANT_KEY: 'a-key-of-variants',
  })

/** Line of each command that prints a result and ends by itself; `{clip}` and `{token}` stand for ids. */
const LINES: Record<string, string> = {
  ...Object.fromEntries(
    ['config check', 'config table', 'version', 'migrate', 'migrate status'].map((name) => [name, name]),
  ),
  ...Object.fromEntries(['tokens create', 'tokens list', 'tokens usage', 'clips list'].map((name) => [name, name])),
  'tokens update': 'tokens update {token} --name other',
  'tokens revoke': 'tokens revoke {token}',
  'clips show': 'clips show {clip}',
  'clips hide': 'clips hide {clip}',
  'clips unhide': 'clips unhide {clip}',
  'clips delete': 'clips delete {clip} --yes',
  'blobs check': 'blobs check',
  'variants sign': 'variants sign w:32 {clip}.webp',
  'audit list': 'audit list',
}
const SERVES = ['serve', 'worker']

test('every command has a line below, or serves', () => {
  const names = commands.map(({ name }) => name)
  expect(names.toSorted()).toEqual([...Object.keys(LINES), ...SERVES].toSorted())
})

test.for(Object.values(LINES))('%s ends with the code of a broken pipe, without an error', async (line) => {
  const token = line.includes('{token}') ? (await service.newToken()).id : ''
  const { code, stderr } = await run(line.replace('{clip}', id).replace('{token}', token))
  expect(code).toBe(141)
  // Notes beside the result stay.
  expect(stderr).toMatch(/^$|^Token \S+ \(unnamed\) may .*\n$/)
})

test('so does the help', async () => {
  expect(await run('--help')).toEqual({ code: 141, stderr: '' })
})
