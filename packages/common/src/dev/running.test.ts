import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { announceStop, claimDataDir, findRunning, releaseDataDir } from './running.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'running-'))
})
afterEach(() => rm(folder, { recursive: true }))

const GONE = '{"pid": 4194303, "birth": "1"}'
const claim = () => claimDataDir(folder, 'auth', 'AUTH_PORT')

test.for([
  ['no file', undefined],
  ['the file of a process that is gone', GONE],
  ['the file of a process whose number another one has now', `{"pid": ${process.pid}, "birth": "1"}`],
  ['a file that names no birth', `{"pid": 4194303}`],
  ['half a file', '{"pid": 41'],
  ['the file of a process that is gone, and of one that died while it put its own there', GONE, 'died'],
] as const)('with %s, of twenty that claim a folder at once exactly one gets it', async ([, content, died]) => {
  if (content !== undefined) await writeFile(join(folder, 'running.json'), content)
  if (died)
    await writeFile(join(folder, `running.json.${createHash('sha256').update(GONE).digest('hex')}`), '{"pid": 4194303}')
  const claims = await Promise.allSettled(Array.from({ length: 20 }, claim))
  expect(claims.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(await findRunning(folder)).toMatchObject({ pid: process.pid })
  expect(await readdir(folder)).toEqual(['running.json'])
  await releaseDataDir(folder)
  expect(await readdir(folder)).toEqual([])
})

test('a second dev waits for one that is stopping', async () => {
  await claim()
  await expect(claim()).rejects.toThrow('auth already runs here')
  await announceStop(folder)
  const next = claim()
  expect(await Promise.race([next.then(() => 'claimed'), sleep(200, 'waiting')])).toBe('waiting')
  await releaseDataDir(folder)
  await next
})

test('a process does not release a folder that another has claimed', async () => {
  await claim()
  await writeFile(join(folder, 'running.json'), `{"pid": ${process.ppid}, "birth": "1"}`)
  await releaseDataDir(folder)
  expect(await readdir(folder)).toEqual(['running.json'])
})
