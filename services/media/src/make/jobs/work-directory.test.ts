import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processBirth } from '@services/common/process/process-identity'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { openWorkDirectory } from './work-directory.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'work-directory-'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

/** Makes the directory of another process that has been silent for so long. */
async function leave(processes: string, pid: number, silentMinutes = 0, life = '0123abcd'): Promise<string> {
  const name = `${processes}_${pid}_${life}4567cdef`
  await mkdir(join(root, name))
  await writeFile(join(root, name, 'half-written'), 'x')
  const time = Date.now() / 1000 - silentMinutes * 60
  await utimes(join(root, name), time, time)
  return name
}

/** The part of its name that processes share which see each other. */
async function processSpace(): Promise<string> {
  const work = await openWorkDirectory(root)
  const [name = ''] = await readdir(root)
  await work.close()
  return name.split('_')[0] as string
}

test('leftovers of dead processes are removed, files of living ones and of other machines stay', async () => {
  const here = await processSpace()
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  const dead = await leave(here, child.pid as number)
  // A directory with our own pid.
  const predecessor = await leave(here, process.pid)
  const birth = (await processBirth(process.ppid)) ?? ''
  const alive = await leave(here, process.ppid, 0, createHash('sha256').update(birth).digest('hex').slice(0, 8))
  // Directories of a container beside us, whose processes have the same pids, one of them ours.
  const elsewhere = await leave('000000000000', process.pid, 50)
  const silent = await leave('000000000000', process.ppid, 61)
  await writeFile(join(root, 'readme'), 'not ours')
  const work = await openWorkDirectory(root)
  const left = await readdir(root)
  expect(left).toEqual(expect.arrayContaining([alive, elsewhere, 'readme']))
  for (const gone of [dead, predecessor, silent]) expect(left).not.toContain(gone)
  await work.close()
  expect(await readdir(root)).toHaveLength(3)
})

test('leftovers of a process killed just now are removed, though its pid is still taken', {
  tags: 'linux',
}, async () => {
  const here = await processSpace()
  // `sleep` asks for no exit of the children that the shell before it had.
  const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000'], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const [line] = await once(parent.stdout, 'data')
  const zombie = Number(line)
  await expect.poll(() => readFile(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n')
  process.kill(zombie, 'SIGKILL')
  await expect.poll(() => processBirth(zombie)).toBeUndefined()
  const killed = await leave(here, zombie)
  // Its number is another process's by now.
  const replaced = await leave(here, Number(parent.pid))
  const work = await openWorkDirectory(root)
  const left = await readdir(root)
  for (const gone of [killed, replaced]) expect(left).not.toContain(gone)
  await work.close()
})

test('leftovers that cannot be removed are reported, and prevent neither the start nor the removal of others', async () => {
  const here = await processSpace()
  const [stubborn, other] = [await leave(here, process.pid), await leave('000000000000', process.ppid, 61)]
  let isRefused = true
  const remove = async (path: string) => {
    if (isRefused && path.endsWith(stubborn)) throw new Error('not permitted')
    await rm(path, { recursive: true })
  }
  const work = await openWorkDirectory(root, { remove })
  const left = await readdir(root)
  expect(left).toContain(stubborn)
  expect(left).not.toContain(other)
  await expect(work.sweep()).rejects.toThrow('leftovers')
  isRefused = false
  await work.sweep()
  expect(await readdir(root)).not.toContain(stubborn)
  await work.close()
})

test('an idle process shows that it is alive, and removes the sign at its end', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  const work = await openWorkDirectory(root)
  const [name = ''] = await readdir(root)
  const directory = join(root, name)
  await utimes(directory, 1, 1)
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  await expect.poll(async () => (await stat(directory)).mtimeMs).toBeGreaterThan(1_000)
  await expect.poll(() => readdir(directory)).toEqual([])
  await work.close()
})

test('a directory deleted by hand exists again for the next file', async () => {
  const work = await openWorkDirectory(root)
  for (const name of await readdir(root)) await rm(join(root, name), { recursive: true })
  await work.withSpace(1, async () => {})
  await writeFile(work.newPath(), 'x')
  for (const name of await readdir(root)) await rm(join(root, name), { recursive: true })
  await work.sweep()
  expect(await readdir((await work.newDirectory()).path)).toEqual([])
  await work.close()
})

test('two services of one process leave each other alone', async () => {
  const first = await openWorkDirectory(root)
  const { path: directory } = await first.newDirectory()
  const second = await openWorkDirectory(root)
  await second.sweep()
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  await Promise.all([first.close(), second.close()])
  expect(await readdir(root)).toEqual([])
})

test('a nearly full disk refuses a file before it is full, and files being received count', async () => {
  const work = await openWorkDirectory(root)
  expect(await work.withSpace(1, async () => 'done')).toBe('done')
  const full = { code: 'unavailable', status: 503, retryAfterSeconds: 60 }
  await expect(work.withSpace(Number.MAX_SAFE_INTEGER / 4, async () => 'never')).rejects.toMatchObject(full)
  await work.close()

  const small = await openWorkDirectory(root, { freeBytesOf: async () => 64 * 1024 ** 2 + 1_000 })
  const gate = Promise.withResolvers<void>()
  const receiving = Array.from({ length: 3 }, () => small.withSpace(300, () => gate.promise))
  gate.resolve()
  const outcomes = await Promise.allSettled(receiving)
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
  await expect(small.withSpace(300, async () => Promise.reject(new Error('its own')))).rejects.toThrow('its own')
  expect(await small.withSpace(300, async () => 'room again')).toBe('room again')
  // The renditions of the smallest file may be large.
  const fuller = await openWorkDirectory(root, { freeBytesOf: async () => 64 * 1024 ** 2 })
  await expect(fuller.withSpace(1, async () => 'never')).rejects.toMatchObject(full)
  await fuller.close()
  await small.close()
})

test('a full disk under the store refuses a file like one under the work directory', async () => {
  const free: Record<string, number> = { [root]: 64 * 1024 ** 2 + 1_000, '/store': 64 * 1024 ** 2 + 100 }
  const work = await openWorkDirectory(root, { store: '/store', freeBytesOf: async (path) => free[path] ?? 0 })
  await expect(work.withSpace(300, async () => 'never')).rejects.toMatchObject({ code: 'unavailable' })
  free['/store'] = 64 * 1024 ** 2 + 1_000
  expect(await work.withSpace(300, async () => 'room')).toBe('room')
  await work.close()
})
