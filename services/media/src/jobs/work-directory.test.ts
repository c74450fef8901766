import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openWorkDirectory } from './work-directory.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'work-directory-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

async function leave(host: string, pid: number, ageHours = 0): Promise<string> {
  const name = `${host}_${pid}_0123abcd`
  await mkdir(join(root, name))
  await writeFile(join(root, name, 'half-written'), 'x')
  const time = Date.now() / 1000 - ageHours * 3600
  await utimes(join(root, name), time, time)
  return name
}

test('what dead processes left goes, what living ones and other machines use stays', async () => {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  const dead = await leave(hostname(), child.pid as number)
  const predecessor = await leave(hostname(), process.pid)
  const alive = await leave(hostname(), process.ppid)
  const elsewhere = await leave('other-machine', 1, 23)
  const elsewhereLongAgo = await leave('other-machine', 2, 25)
  await writeFile(join(root, 'readme'), 'not ours')
  const work = await openWorkDirectory(root)
  const left = await readdir(root)
  expect(left).toEqual(expect.arrayContaining([alive, elsewhere, 'readme']))
  for (const gone of [dead, predecessor, elsewhereLongAgo]) expect(left).not.toContain(gone)
  await work.close()
  expect(await readdir(root)).toHaveLength(3)
})

test('two services of one process leave each other alone', async () => {
  const first = await openWorkDirectory(root)
  const directory = await first.newDirectory()
  const second = await openWorkDirectory(root)
  await second.sweep()
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  await Promise.all([first.close(), second.close()])
  expect(await readdir(root)).toEqual([])
})

test('a disk that is nearly full is told before it is full, and files on their way count', async () => {
  const work = await openWorkDirectory(root)
  expect(await work.withSpace(1, async () => 'done')).toBe('done')
  const full = { code: 'unavailable', status: 503, retryAfterSeconds: 60 }
  await expect(work.withSpace(Number.MAX_SAFE_INTEGER / 4, async () => 'never')).rejects.toMatchObject(full)
  await work.close()

  const small = await openWorkDirectory(root, async () => 1_000)
  const gate = Promise.withResolvers<void>()
  const receiving = Array.from({ length: 3 }, () => small.withSpace(300, () => gate.promise))
  gate.resolve()
  const outcomes = await Promise.allSettled(receiving)
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
  await expect(small.withSpace(300, async () => Promise.reject(new Error('its own')))).rejects.toThrow('its own')
  expect(await small.withSpace(300, async () => 'room again')).toBe('room again')
  await small.close()
})
