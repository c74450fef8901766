import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'

let folder: string
let dataDir: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'embedded-postgres-test-'))
  dataDir = join(folder, 'data')
})

afterAll(() => rm(folder, { recursive: true, force: true }))

test('the first start initialises, the second keeps the data and the password', async () => {
  const first = await startEmbeddedPostgres({ dataDir, durable: false, database: 'shop' })
  await query(first.url, 'create table kept as select 42 as answer')
  await first.stop()
  const second = await startEmbeddedPostgres({ dataDir, durable: false, database: 'shop' })
  const rows = await query(second.url, 'select answer from kept')
  await second.stop()

  expect(rows).toEqual([{ answer: 42 }])
  expect(new URL(second.url).password).toBe(new URL(first.url).password)
  expect(await isRunning(second.pid)).toBe(false)
})

test('stopping and starting again on the same port works at once', async () => {
  const first = await startEmbeddedPostgres({ dataDir, durable: false })
  await first.stop()
  const second = await startEmbeddedPostgres({ dataDir, durable: false, port: first.port })
  expect(await query(second.url, 'show fsync')).toEqual([{ fsync: 'off' }])
  await second.stop()
  expect(second.url).toBe(first.url)
})

test('data meant to last is written through', async () => {
  const server = await startEmbeddedPostgres({ dataDir })
  expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }])
  expect(await query(server.url, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }])
  await server.stop()
})

test.each([
  { whose: 'of a process that is gone', pid: () => 4_000_000 },
  { whose: 'carried by a stranger by now', pid: () => process.pid },
])('a postmaster.pid $whose does not keep it from starting', async ({ pid }) => {
  await writeFile(join(dataDir, 'postmaster.pid'), `${pid()}\n${dataDir}\n`)
  const server = await startEmbeddedPostgres({ dataDir, durable: false })
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await server.stop()
})

test('after kill -9 of parent and PostgreSQL together, the next start has the data', async () => {
  const orphaned = await startInChildProcess(dataDir)
  await query(orphaned.url, 'create table if not exists survivors as select 7 as n')
  process.kill(orphaned.pid, 'SIGKILL')
  orphaned.parent.kill('SIGKILL')
  const server = await startEmbeddedPostgres({ dataDir, durable: false })
  expect(await query(server.url, 'select n from survivors')).toEqual([{ n: 7 }])
  await server.stop()
})

test.each(['SIGKILL', 'SIGTERM'] as const)('PostgreSQL ends when its parent dies of %s', async (signal) => {
  const orphaned = await startInChildProcess(dataDir)
  orphaned.parent.kill(signal)
  await expect.poll(() => isRunning(orphaned.pid)).toBe(false)
})

test('an interrupted first start is redone and leaves nothing behind', async () => {
  const parent = join(folder, 'interrupted')
  await mkdir(join(parent, 'data.unfinished-x1', 'base'), { recursive: true })
  await writeFile(join(parent, 'data.unfinished-x1', 'PG_VERSION'), '18')
  const server = await startEmbeddedPostgres({ dataDir: join(parent, 'data'), durable: false })
  await server.stop()
  expect(await readdir(parent)).toEqual(['data'])
})

test('a folder with other files in it is refused untouched', async () => {
  const other = join(folder, 'holiday-photos')
  await mkdir(other)
  await writeFile(join(other, 'beach.jpg'), '')
  await expect(startEmbeddedPostgres({ dataDir: other })).rejects.toThrow('holds files but no PostgreSQL data')
  expect(await readdir(other)).toEqual(['beach.jpg'])
})

test('a port in use is said by number, with the variable that changes it', async () => {
  const port = await findFreePort()
  const occupant = createServer().listen(port, '127.0.0.1')
  await once(occupant, 'listening')
  await expect(startEmbeddedPostgres({ dataDir, port, portVariable: 'SHOP_DB_PORT' })).rejects.toThrow(
    `Port ${port} is in use. Set SHOP_DB_PORT to another one.`,
  )
  occupant.close()
})

test('data that a running PostgreSQL uses is not touched', async () => {
  const running = await startEmbeddedPostgres({ dataDir, durable: false })
  await expect(startEmbeddedPostgres({ dataDir, durable: false })).rejects.toThrow(`kill -INT ${running.pid}`)
  expect(await query(running.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await running.stop()
})

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function startInChildProcess(dataDir: string) {
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(new URL('./embedded-postgres.ts', import.meta.url).pathname)}
    const { url, pid } = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)} })
    console.log(JSON.stringify({ url, pid }))
    setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(parent.stdout, 'data')
  const { url, pid } = JSON.parse(String(line)) as { url: string; pid: number }
  return { parent, url, pid }
}

/** A process that ended but that nobody reaped (no init in the container) does not run. */
async function isRunning(pid: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const ps = spawn('ps', ['-o', 'stat=', '-p', String(pid)])
  ps.stdout.on('data', (chunk) => resolve(String(chunk)))
  ps.once('close', () => resolve(''))
  ps.once('error', () => resolve('?'))
  const state = await promise
  return state.trim() !== '' && !state.startsWith('Z')
}
