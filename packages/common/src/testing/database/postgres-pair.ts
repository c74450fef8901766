// A PostgreSQL primary, a standby that streams from it, and one address that leads to either, for tests of failover.
import { chown, cp, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect } from 'vitest'
import { startEmbeddedPostgres } from '../../dev/embedded-postgres.ts'
import { startWay } from './way-to-server.ts'

export type PostgresPair = Awaited<ReturnType<typeof startPostgresPair>>

/** `fill` migrates the database before it is copied to the standby. */
export async function startPostgresPair(database: string, fill: (url: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'postgres-pair-'))
  const dataDir = join(folder, 'primary')
  const standbyDir = join(folder, 'standby')
  let primary = await startEmbeddedPostgres({ dataDir, database })
  await fill(primary.url)
  await primary.stop()
  await copyData(dataDir, standbyDir)
  primary = await startEmbeddedPostgres({ dataDir, database })
  const { password } = new URL(primary.url)
  const conninfo = `host=127.0.0.1 port=${primary.port} user=postgres password=${password}`
  await writeAs(standbyDir, 'standby.signal', '')
  await writeAs(standbyDir, 'postgresql.auto.conf', `primary_conninfo = '${conninfo}'\n`)
  const standby = await startEmbeddedPostgres({ dataDir: standbyDir, database })
  const way = await startWay(primary.url)
  const isStreaming = async () =>
    (await queryOn(primary.url, 'select from pg_stat_replication where replay_lsn = pg_current_wal_lsn()')).length === 1
  await expect.poll(isStreaming).toBe(true)
  /** Whether all writing transactions have ended and reached the standby. */
  const isCaughtUp = async () =>
    (await queryOn(primary.url, 'select from pg_stat_activity where backend_xid is not null')).length === 0 &&
    (await isStreaming())
  /** Counts the scans of a table on the standby; connections report them within ten seconds, or when they end. */
  const countScans = async (table: string): Promise<number> => {
    const scans = 'coalesce(seq_scan, 0) + coalesce(idx_scan, 0)'
    const [row] = await queryOn(
      standby.url,
      `select (${scans})::int as count from pg_stat_user_tables where relname = '${table}'`,
    )
    return row.count
  }
  return {
    ...way,
    primary,
    standby,
    onPrimary: (text: string) => queryOn(primary.url, text),
    onStandby: (text: string) => queryOn(standby.url, text),
    /** Makes new transactions read-only; running ones may still write. */
    makeReadOnly: async () => {
      await queryOn(primary.url, 'alter system set default_transaction_read_only = on')
      await queryOn(primary.url, 'select pg_reload_conf()')
    },
    makeWritable: async () => {
      await queryOn(primary.url, 'alter system reset default_transaction_read_only')
      await queryOn(primary.url, 'select pg_reload_conf()')
    },
    isCaughtUp,
    /** Keeps later commits from the readers of the standby. */
    pauseReplay: async () => {
      await expect.poll(isCaughtUp).toBe(true)
      await queryOn(standby.url, 'select pg_wal_replay_pause()')
      const readState = () => queryOn(standby.url, 'select pg_get_wal_replay_pause_state() as state')
      await expect.poll(readState).toEqual([{ state: 'paused' }])
    },
    resumeReplay: async () => {
      await queryOn(standby.url, 'select pg_wal_replay_resume()')
    },
    countScans,
    /** Repeats a read until the standby reports that it scanned the table. */
    expectScans: async (table: string, read: () => Promise<unknown>): Promise<void> => {
      const before = await countScans(table)
      const countAfterRead = async () => {
        await read()
        return countScans(table)
      }
      await expect.poll(countAfterRead).toBeGreaterThan(before)
    },
    /** Ends the connections of clients to the standby, and waits until they have. */
    endReaders: async () => {
      const readers = `pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`
      await queryOn(standby.url, `select pg_terminate_backend(pid, 60000) from ${readers}`)
    },
    /** Cuts the standby off from later commits. */
    stopReplication: async () => {
      await queryOn(standby.url, `alter system set primary_conninfo = ''`)
      await queryOn(standby.url, 'select pg_reload_conf()')
      await expect.poll(() => queryOn(standby.url, 'select from pg_stat_wal_receiver')).toEqual([])
    },
    promote: () => queryOn(standby.url, 'select pg_promote()'),
    killPrimary: () => process.kill(primary.pid, 'SIGKILL'),
    end: async () => {
      way.close()
      await standby.stop()
      await primary.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function copyData(from: string, to: string): Promise<void> {
  const { uid, gid } = await stat(from)
  await cp(from, to, { recursive: true, preserveTimestamps: true })
  if (process.getuid?.() === 0) await chownAll(to, uid, gid)
}

async function chownAll(path: string, uid: number, gid: number): Promise<void> {
  await chown(path, uid, gid)
  for (const name of await readdir(path, { recursive: true })) await chown(join(path, name), uid, gid)
}

async function writeAs(folder: string, name: string, text: string): Promise<void> {
  const { uid, gid } = await stat(folder)
  await writeFile(join(folder, name), text)
  await chown(join(folder, name), uid, gid)
}

async function queryOn(url: string, text: string) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
