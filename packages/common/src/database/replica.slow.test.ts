import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type PostgresPair, startPostgresPair } from '../testing/database/postgres-pair.ts'
import { openDatabase } from './pool.ts'
import { openReads, type Reads } from './replica.ts'

interface DB {
  notes: { text: string }
}

let pair: PostgresPair

beforeEach(async () => {
  pair ??= await startPair()
  await pair.onPrimary('truncate notes')
})
afterAll(() => pair.end())

async function startPair() {
  const started = await startPostgresPair('notes', async (url) => {
    const { pool, close } = openDatabase({
      url,
      maxPoolSize: 1,
      applicationName: 'test',
      log: pino({ level: 'silent' }),
    })
    await pool.query('create table notes (text text)')
    await close()
  })
  // A statement on the replica never holds up its replay.
  await started.onStandby('alter system set max_standby_streaming_delay = 0')
  await started.onStandby('select pg_reload_conf()')
  return started
}

/** Opens both databases; the address of the pair leads to the replica. */
async function open({ maxLagSeconds = 600, replicaUrl = pair.url, pooler = 'none' as 'none' | 'transaction' } = {}) {
  pair.leadTo(pair.standby)
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line).msg) })
  const options = { url: pair.primary.url, pooler, maxPoolSize: 4, applicationName: 'test', log }
  const { db, close } = openDatabase<DB>(options)
  const reads = await openReads(db, {
    ...options,
    replica: { url: replicaUrl, maxLagSeconds },
    answerWithinMs: 10_000, // a busy machine is no silent one
  })
  onTestFinished(async () => {
    await pair.resumeReplay()
    await reads.close()
    await close()
  })
  const write = (text: string) => db.insertInto('notes').values({ text }).execute()
  return { reads, lines, write }
}

type How = (reads: Reads<DB>) => Reads<DB>['current']
const current: How = (reads) => reads.current
const recent: How = (reads) => reads.recent

const read = (reads: Reads<DB>, how: How) =>
  how(reads)(async (db) => {
    const { rows } = await sql<{ server: string; texts: string[] }>`
      select case when pg_is_in_recovery() then 'replica' else 'primary' end as server,
        array(select text from notes order by text) as texts`.execute(db)
    return rows[0]
  })

const readServer = async (reads: Reads<DB>, how: How) => (await read(reads, how))?.server

test('current reads come from the replica and show every commit before them', async () => {
  const { reads, write, lines } = await open()
  const written: string[] = []
  const servers = new Set<string | undefined>()
  for (let number = 100; number < 150; number++) {
    await write(String(number))
    written.push(String(number))
    const found = await read(reads, current)
    expect(found?.texts).toEqual(written)
    servers.add(found?.server)
  }
  expect(servers).toContain('replica')
  expect(lines).toEqual(['replica in use'])
})

test('a late replica shows no old state to current reads, and answers recent ones within the bound', async () => {
  const { reads, write } = await open()
  await pair.pauseReplay()
  await write('new')
  expect(await read(reads, current)).toEqual({ server: 'primary', texts: ['new'] })
  expect(await read(reads, recent)).toEqual({ server: 'replica', texts: [] })
  await pair.resumeReplay()
  await expect.poll(() => read(reads, current)).toEqual({ server: 'replica', texts: ['new'] })
})

test('a standby is not used for another database than its own', async () => {
  const other = new URL(pair.url)
  other.pathname = '/postgres'
  const { reads, write, lines } = await open({ replicaUrl: other.href })
  await write('here')
  for (const how of [current, recent]) expect(await read(reads, how)).toEqual({ server: 'primary', texts: ['here'] })
  expect(lines).toEqual(['replica not in use: late or away'])
})

test('a replica is not used while its lag exceeds the bound', async () => {
  const { reads, write, lines } = await open({ maxLagSeconds: 1 })
  await expect.poll(() => readServer(reads, recent)).toBe('replica')
  await pair.pauseReplay()
  await write('new')
  await expect.poll(() => read(reads, recent)).toEqual({ server: 'primary', texts: ['new'] })
  await expect.poll(() => lines.at(-1)).toBe('replica not in use: late or away')
  await expect.poll(() => reads.lagSeconds()).toBeGreaterThan(2)
  await pair.resumeReplay()
  await expect.poll(() => read(reads, recent)).toEqual({ server: 'replica', texts: ['new'] })
  expect(reads.lagSeconds()).toBeLessThan(2)
  await expect.poll(() => lines.at(-1)).toBe('replica in use')
})

test('the primary answers while the replica is away, and the replica when it is back', async () => {
  const { reads, lines } = await open()
  await expect.poll(() => readServer(reads, current)).toBe('replica')
  pair.leadTo({ url: 'postgres://127.0.0.1:1' })
  await pair.endReaders()
  await expect.poll(() => readServer(reads, recent)).toBe('primary')
  for (const how of [current, recent]) expect(await readServer(reads, how)).toBe('primary')
  await expect.poll(() => reads.lagSeconds()).toBeNaN()
  pair.leadTo(pair.standby)
  await expect.poll(() => readServer(reads, recent)).toBe('replica')
  await expect.poll(() => lines).toEqual(['replica in use', 'replica not in use: late or away', 'replica in use'])
})

test('a list does not wait for the answer of a silent replica', async () => {
  const { reads, lines } = await open()
  await expect.poll(() => readServer(reads, current)).toBe('replica')
  const silent = createServer().listen(0, '127.0.0.1')
  const connections: Socket[] = []
  silent.on('connection', (socket) => connections.push(socket))
  onTestFinished(() => {
    silent.close()
    for (const socket of connections) socket.destroy()
  })
  await once(silent, 'listening')
  pair.leadTo({ url: `postgres://127.0.0.1:${(silent.address() as AddressInfo).port}` })
  onTestFinished(pair.silenceOpen())
  expect(await readServer(reads, current)).toBe('primary')
  expect(lines).toEqual(['replica in use'])
})

test('a silent replica costs a page seconds, and the next reads nothing', async () => {
  const { reads, lines } = await open()
  await expect.poll(() => readServer(reads, recent)).toBe('replica')
  pair.leadTo({ url: 'postgres://127.0.0.1:1' })
  pair.silenceOpen()
  expect(await readServer(reads, recent)).toBe('primary')
  await expect.poll(() => lines).toEqual(['replica in use', 'replica not in use: late or away'])
  expect(await readServer(reads, current)).toBe('primary')
})

test.for<[string, string, () => Promise<unknown>]>([
  ['an end of its connection', 'pg_terminate_backend(pg_backend_pid())::text', async () => {}],
  [
    'a conflict with the replay',
    `pg_sleep(600)::text`,
    async () => {
      const sleeping = `select from pg_stat_activity where query like '%pg_sleep(600)%' and wait_event = 'PgSleep'`
      await expect.poll(async () => (await pair.onStandby(sleeping)).length).toBe(1)
      await pair.onPrimary('delete from notes')
      await pair.onPrimary('vacuum notes')
    },
  ],
])('a read that fails on the replica by %s is answered by the primary', async ([, failing, meanwhile]) => {
  const { reads, write } = await open()
  await write('kept')
  await expect.poll(() => readServer(reads, current)).toBe('replica')
  const servers: string[] = []
  const answer = reads.current(async (db) => {
    const { rows } = await sql<{ server: string }>`
      select case when pg_is_in_recovery() then ${sql.raw(failing)} else 'primary' end as server
        from (values (1)) as one left join notes on true`.execute(db)
    servers.push(rows[0]?.server ?? '')
  })
  await meanwhile()
  await answer
  expect(servers).toEqual(['primary'])
  await expect.poll(() => readServer(reads, current)).toBe('replica')
})

test('an answer that is not final is read again from the primary', async () => {
  const { reads, write } = await open()
  await pair.pauseReplay()
  await write('new')
  const countNotes = (isFinal: (count: number) => boolean) =>
    reads.recent(async (db) => (await db.selectFrom('notes').selectAll().execute()).length, isFinal)
  expect(await countNotes(() => true)).toBe(0)
  expect(await countNotes((count) => count > 0)).toBe(1)
})

test('an error of the replica alone, such as a missing row, is decided by the primary', async () => {
  const { reads, write } = await open()
  await pair.pauseReplay()
  await write('new')
  const find = (text: string) =>
    reads.recent((db) => db.selectFrom('notes').selectAll().where('text', '=', text).executeTakeFirstOrThrow())
  expect(await find('new')).toEqual({ text: 'new' })
  await expect(find('missing')).rejects.toThrow('no result')
})

test('a replica has a time limit of its own, also when the primary is behind a pooler', async () => {
  const { reads } = await open({ pooler: 'transaction' })
  const limit = async () => {
    const show = sql<{ statement_timeout: string }>`show statement_timeout`
    return (await reads.recent((db) => show.execute(db))).rows[0]?.statement_timeout
  }
  await expect.poll(() => readServer(reads, recent)).toBe('replica')
  expect(await limit()).toBe('3s')
})

test('a server that is no standby is not used, because its lag cannot be measured', async () => {
  const { reads, lines } = await open({ replicaUrl: pair.primary.url })
  expect(await readServer(reads, current)).toBe('primary')
  expect(reads.lagSeconds()).toBeNaN()
  expect(lines).toEqual(['replica not in use: late or away'])
})
