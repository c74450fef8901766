// Addresses of a database on several hosts. The current address stays until it fails or becomes read-only, so a former
// primary returns only once it takes writes.
import type pg from 'pg'
import { takesWrites } from './check-idle-connections.ts'
import { isDatabaseRefusal, recordRefusedConnection } from './errors.ts'

/** Addresses that all pools and listeners of the process share: one failed connection spares the others. */
export interface Addresses {
  count: number
  /** Address of the next connection. */
  current: string
  /** Makes the next address current, unless another connection already did. */
  passOver(address: string): void
}

const known = new Map<string, Addresses>()

/** `fallbacks`: further addresses, complete URLs, in the order of attempts. */
export function addressesOf(url: string, fallbacks: readonly string[] = []): Addresses {
  const urls = [url, ...fallbacks]
  const key = urls.join()
  const addresses = known.get(key) ?? makeAddresses(urls)
  known.set(key, addresses)
  return addresses
}

function makeAddresses(urls: readonly string[]): Addresses {
  let index = 0
  const at = (position: number) => urls[position % urls.length] as string
  return {
    count: urls.length,
    get current() {
      return at(index)
    },
    passOver(address) {
      if (address === at(index)) index = (index + 1) % urls.length
    },
  }
}

/** Throws on a server that accepts no writes, such as a standby. */
export async function requireWrites(client: pg.ClientBase, withinMs: number): Promise<void> {
  if (await takesWrites(client, withinMs)) return
  const error = new Error('the server accepts no writes')
  recordRefusedConnection(error)
  throw error
}

const POOL_EXHAUSTED = 'timeout exceeded when trying to connect'

/** Makes the pool's `connect` attempt each address once; later connections pass over those that failed. */
export function attemptEachAddress(pool: pg.Pool, addresses: Addresses): void {
  const connectOnce = pool.connect.bind(pool) as () => Promise<pg.PoolClient>
  const attempt = async (left: number): Promise<pg.PoolClient> => {
    const address = addresses.current
    try {
      return await connectOnce()
    } catch (error) {
      // Another address has the same users and passwords.
      if (isDatabaseRefusal(error) || (error as Error).message === POOL_EXHAUSTED) throw error
      addresses.passOver(address)
      if (left === 1 || pool.ending) throw error
      return attempt(left - 1)
    }
  }
  // The callback is that of `pool.query`.
  pool.connect = ((callback?: (err: Error | undefined, client?: pg.PoolClient, done?: unknown) => void) => {
    const connected = attempt(addresses.count)
    if (!callback) return connected
    connected.then((client) => callback(undefined, client, client.release), callback)
  }) as pg.Pool['connect']
}
