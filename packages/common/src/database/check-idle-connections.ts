// Checks of idle connections: a replaced or silent primary keeps them open. When one connection proves useless, all
// idle ones to the same address are checked, in every pool of the process.
import type pg from 'pg'
import { regardlessOfDeadline } from '../request-deadline.ts'

/** Longest wait for a check's answer; a server that is merely slow keeps its connections. */
const CHECK_WITHIN_MS = 5_000

const openPools = new Map<string, Set<pg.Pool>>()
const poolsBeingChecked = new WeakSet<pg.Pool>()

/** Registers a pool for checks until the returned function is called. */
export function recordOpenPool(url: string, pool: pg.Pool): () => void {
  const siblings = openPools.get(url) ?? new Set()
  openPools.set(url, siblings.add(pool))
  return () => {
    siblings.delete(pool)
    if (siblings.size === 0 && openPools.get(url) === siblings) openPools.delete(url)
  }
}

/** Drops idle connections without a writable server behind them; each would cost a request its whole time limit. */
export function checkIdleConnections(url = ''): void {
  for (const pool of openPools.get(url) ?? []) void regardlessOfDeadline(() => checkIdle(pool))
}

async function checkIdle(pool: pg.Pool): Promise<void> {
  if (poolsBeingChecked.has(pool)) return
  poolsBeingChecked.add(pool)
  await Promise.allSettled(Array.from({ length: pool.idleCount }, () => checkConnection(pool)))
  poolsBeingChecked.delete(pool)
}

/** Whether a connection of the pool reaches a writable server; drops it otherwise. Throws when there is none. */
async function checkConnection(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  const isUseful = await takesWrites(client, CHECK_WITHIN_MS).catch(() => false)
  client.release(!isUseful)
  return isUseful
}

/** Whether the database is reachable and writable; if not, checks all idle connections to it. */
export async function isWritable(pool: pg.Pool): Promise<boolean> {
  const isUseful = await checkConnection(pool).catch(() => undefined)
  if (isUseful === false) checkIdleConnections(pool.options.connectionString)
  return isUseful === true
}

/** Whether the server accepts writes: no standby, no read-only primary. Throws when it does not answer. */
export async function takesWrites(client: pg.ClientBase, withinMs: number): Promise<boolean> {
  const text = `select current_setting('transaction_read_only') = 'off' as writes`
  const { rows } = await client.query({ text, query_timeout: withinMs } as pg.QueryConfig)
  return rows[0].writes
}
