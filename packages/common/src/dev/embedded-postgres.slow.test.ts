import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { locatePostgresBinaries } from './postgres/postgres-process.ts'

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

test('durable data is written with fsync', async () => {
  const server = await startEmbeddedPostgres({ dataDir })
  expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }])
  expect(await query(server.url, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'on' }])
  await server.stop()
})

test.each([
  { whose: 'of a process that is gone', pid: () => 4_000_000 },
  { whose: 'carried by a stranger by now', pid: () => process.pid },
])('a postmaster.pid $whose does not prevent a start', async ({ pid }) => {
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

test('data of a running PostgreSQL is refused', async () => {
  const running = await startEmbeddedPostgres({ dataDir, durable: false })
  await expect(startEmbeddedPostgres({ dataDir, durable: false })).rejects.toThrow(`kill -INT ${running.pid}`)
  expect(await query(running.url, 'select 1 as one')).toEqual([{ one: 1 }])
  await running.stop()
})

describe('as root, in a folder that only root may enter', { tags: 'root' }, () => {
  let closed: string
  let place: { dataDir: string; binaries: { initdb: string; postgres: string } }

  beforeAll(async () => {
    closed = join(folder, 'of root alone')
    await mkdir(closed, { mode: 0o700 })
    // Programs and data are in there, like in a clone below /root: PostgreSQL checks the path it is called by.
    const { initdb, postgres } = await locatePostgresBinaries()
    await symlink(dirname(dirname(initdb)), join(closed, 'native'))
    const inside = (program: string) => join(closed, 'native/bin', basename(program))
    place = { dataDir: join(closed, 'data'), binaries: { initdb: inside(initdb), postgres: inside(postgres) } }
  })

  afterEach(() => vi.unstubAllEnvs())

  test('a second start finds the data', async () => {
    const first = await startEmbeddedPostgres({ ...place, durable: false })
    await query(first.url, 'create table kept as select 42 as answer')
    await first.stop()
    const second = await startEmbeddedPostgres({ ...place, durable: false })
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }])
    await second.stop()
  })

  test.each([
    { where: 'is missing', script: undefined, why: 'spawn setpriv ENOENT' },
    {
      where: 'is not allowed to',
      script: 'echo setpriv: set process securebits failed >&2; exit 1',
      why: 'securebits',
    },
  ])('an error explains the remedy where setpriv $where', async ({ script, why }) => {
    const programs = await mkdtemp(join(folder, 'programs-'))
    await symlink(await whereIs('id'), join(programs, 'id'))
    if (script) await writeFile(join(programs, 'setpriv'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    vi.stubEnv('PATH', programs)
    const refusal = await messageOf(startEmbeddedPostgres({ ...place, dataDir: join(closed, 'other') }))
    expect(refusal).toMatch(/^PostgreSQL cannot run as root, .+ may not enter .+\. Open it \(chmod o\+x .+\), .+\.$/)
    expect(refusal).toContain(why)
  })
})

test('a failed first start reports the reason in one sentence', async () => {
  const initdb = join(folder, 'initdb')
  await writeFile(
    initdb,
    '#!/bin/sh\n[ "$1" = --version ] && exit\necho "initdb: error: No space left on device" >&2\nexit 1\n',
  )
  await chmod(initdb, 0o755)
  const dataDir = join(folder, 'full')
  const { postgres } = await locatePostgresBinaries()
  expect(await messageOf(startEmbeddedPostgres({ dataDir, binaries: { initdb, postgres } }))).toBe(
    `PostgreSQL could not make its data in ${dataDir} (initdb, code 1): No space left on device`,
  )
})

const messageOf = (starting: Promise<unknown>) =>
  starting.then(
    () => 'it started',
    (error: Error) => error.message,
  )

async function whereIs(program: string): Promise<string> {
  const child = spawn('sh', ['-c', `command -v ${program}`])
  return (await text(child.stdout)).trim()
}

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
    import { startEmbeddedPostgres } from ${JSON.stringify(join(import.meta.dirname, 'embedded-postgres.ts'))}
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

/** Whether a process runs; a zombie, in a container without init, does not. */
async function isRunning(pid: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const ps = spawn('ps', ['-o', 'stat=', '-p', String(pid)])
  ps.stdout.on('data', (chunk) => resolve(String(chunk)))
  ps.once('close', () => resolve(''))
  ps.once('error', () => resolve('?'))
  const state = await promise
  return state.trim() !== '' && !state.startsWith('Z')
}
