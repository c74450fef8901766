// Idle connections and the servers they lead to: a primary that was replaced, or one that fell silent, keeps them
// open. The one rule: where one is found useless, all idle ones to the same address are checked, in every pool of the process.
import type pg from 'pg'
import { regardlessOfDeadline } from './deadline.ts'

/** Longest wait for the answer to a check: a server that answers late is slow, and gets to keep its connections. */
const CHECK_WITHIN_MS = 5_000

/** Open pools by address of their database. */
const openPools = new Map<string, Set<pg.Pool>>()
const poolsBeingChecked = new WeakSet<pg.Pool>()

/** Has the idle connections of a pool checked with those of the others, until the returned function is called. */
export function noteOpenPool(url: string, pool: pg.Pool): () => void {
  const siblings = openPools.get(url) ?? new Set()
  openPools.set(url, siblings.add(pool))
  return () => {
    siblings.delete(pool)
    if (siblings.size === 0 && openPools.get(url) === siblings) openPools.delete(url)
  }
}

/**
 * Gives up the idle connections to a database behind which no server answers or takes writes. Where one of them was found
 * useless the others may be so too, and each would cost a request its whole time limit to find out.
 */
export function checkIdleConnections(url = ''): void {
  for (const pool of openPools.get(url) ?? []) void regardlessOfDeadline(() => checkIdle(pool))
}

async function checkIdle(pool: pg.Pool): Promise<void> {
  if (poolsBeingChecked.has(pool)) return
  poolsBeingChecked.add(pool)
  await Promise.allSettled(Array.from({ length: pool.idleCount }, () => checkConnection(pool)))
  poolsBeingChecked.delete(pool)
}

/** Whether a connection of the pool leads to a server that takes writes; gives it up otherwise. Throws when there is none. */
async function checkConnection(pool: pg.Pool): Promise<boolean> {
  const client = await pool.connect()
  const isUseful = await takesWrites(client, CHECK_WITHIN_MS).catch(() => false)
  client.release(!isUseful)
  return isUseful
}

/** Whether the database can be reached and takes writes. A connection that shows otherwise is given up, with all that are like it. */
export async function isWritable(pool: pg.Pool): Promise<boolean> {
  const isUseful = await checkConnection(pool).catch(() => undefined)
  if (isUseful === false) checkIdleConnections(pool.options.connectionString)
  return isUseful === true
}

/** Whether the server takes writes: not a standby, nor a primary that was made read-only. Throws when it does not answer. */
export async function takesWrites(client: pg.ClientBase, withinMs: number): Promise<boolean> {
  const text = `select current_setting('transaction_read_only') = 'off' as writes`
  const { rows } = await client.query({ text, query_timeout: withinMs } as pg.QueryConfig)
  return rows[0].writes
}
