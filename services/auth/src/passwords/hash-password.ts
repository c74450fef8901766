import { availableParallelism } from 'node:os'
import { argon2id, type HashOptions, hash, needsRehash, verify } from 'argon2'
import { observeHashQueue } from '../metrics.ts'
import { createHashQueue } from './hash-queue.ts'

export interface HashingSettings {
  memoryKib: number
  passes: number
  lanes: number
}

export interface Passwords {
  hash(password: string): Promise<string>
  /**
   * Whether the password belongs to the hash. Without a hash (unknown user, no password) it does the same work against
   * a made-up one and answers false, so that time tells nothing.
   */
  verify(storedHash: string | null | undefined, password: string): Promise<boolean>
  needsRehash(storedHash: string): boolean
}

/**
 * Threads of libuv's pool, which argon2 runs on. Fewer would leave cores idle between two hashes; machines with more cores
 * run more processes (WEB_CONCURRENCY).
 */
const HASHES_AT_ONCE = 4

/** Waiting hashes per core before the excess is refused: about two seconds of work at 25 ms each. */
const MAX_WAITING_PER_CORE = 80

/** argon2id off the event loop (libuv's pool), behind a bounded queue. The made-up hash is computed once, at start. */
export async function createPasswords(settings: HashingSettings): Promise<Passwords> {
  const queue = createHashQueue(HASHES_AT_ONCE, availableParallelism() * MAX_WAITING_PER_CORE)
  observeHashQueue(queue.waiting)
  const options: HashOptions = {
    type: argon2id,
    memoryCost: settings.memoryKib,
    timeCost: settings.passes,
    parallelism: settings.lanes,
  }
  const decoy = await hash('no user has this password', options)
  return {
    hash: (password) => queue.run(() => hash(password, options)),
    verify: (storedHash, password) =>
      queue.run(async () => {
        const matches = await verify(storedHash || decoy, password).catch(() => false)
        return matches && Boolean(storedHash)
      }),
    needsRehash: (storedHash) => needsRehash(storedHash, options),
  }
}
