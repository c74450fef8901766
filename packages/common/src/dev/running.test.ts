import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { announceStop, claimDataDir, findRunning, publishAddresses, releaseDataDir } from './running.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'running-'))
})
afterEach(() => rm(folder, { recursive: true }))

const claim = () => claimDataDir(folder, 'auth', 'AUTH_PORT')

test.for([
  ['no file', undefined],
  ['the file of a process that is gone', '{"pid": 4194303, "birth": "1"}'],
  ['the file of a process whose number another one has now', `{"pid": ${process.pid}, "birth": "1"}`],
  ['a file that names no birth', `{"pid": 4194303}`],
  ['half a file', '{"pid": 41'],
] as const)('with %s, a dev claims the folder, and of twenty that come later none does', async ([, content]) => {
  if (content !== undefined) await writeFile(join(folder, 'running.json'), content)
  await claim()
  const claims = await Promise.allSettled(Array.from({ length: 20 }, claim))
  expect(claims.filter(({ status }) => status === 'fulfilled')).toEqual([])
  expect(await findRunning(folder)).toMatchObject({ pid: process.pid })
  expect(await readdir(folder)).toEqual(['running.json'])
  await releaseDataDir(folder)
  expect(await readdir(folder)).toEqual([])
})

test('the dev that serves has the folder, even where a later one that then fails claimed it too', async () => {
  await claim()
  await writeFile(join(folder, 'running.json'), `{"pid": ${process.ppid}, "birth": "1"}`)
  await publishAddresses(folder, { url: 'http://127.0.0.1:1' })
  expect(await findRunning(folder)).toMatchObject({ pid: process.pid, addresses: { url: 'http://127.0.0.1:1' } })
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
