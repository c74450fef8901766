// Hashes passwords with argon2id behind a bounded queue. Parameters: config/passwords.ts (19,456 KiB, 2 passes, 1
// lane).
import { availableParallelism } from 'node:os'
import { createSemaphore, type Semaphore } from '@services/common/concurrency/semaphore'
import { disconnectSignal } from '@services/common/request-deadline'
import { argon2id, type HashOptions, hash } from 'argon2'
import { apiError } from '../../errors.ts'
import { observeHashQueue } from '../../metrics.ts'
import { isCostly, readsOnlyTheBeginning, verifyImported } from './imported-hash.ts'

export interface HashingSettings {
  memoryKib: number
  passes: number
  lanes: number
}

export type Passwords = Awaited<ReturnType<typeof createPasswords>>

/** Cores + 1, at most the 4 threads of libuv's pool. Each hash takes 19 MiB. */
const HASHES_AT_ONCE = Math.min(4, availableParallelism() + 1)

/** Waiting hashes per core before the excess is refused: about two seconds of work at 25 ms each. */
const MAX_WAITING_PER_CORE = 80

/** Costly imported hashes take a hundred megabytes or seconds each; one at a time leaves the others three threads. */
const MAX_WAITING_COSTLY = 8

/** Seconds in which a full queue of hashes of 25 ms drains. */
const RETRY_AFTER_SECONDS = 2
const overCapacity = () => apiError('over_capacity', { retryAfterSeconds: RETRY_AFTER_SECONDS })

/** Runs work in a slot of the queue; a request whose client disconnects leaves the queue. */
function queued<Result>(queue: Semaphore, work: () => Promise<Result>): Promise<Result> {
  const signal = disconnectSignal(overCapacity)
  return queue.run(work, signal && { signal })
}

/** Runs argon2id in libuv's pool behind a bounded queue, in which none waits longer than `longestWaitMs`. */
export async function createPasswords(settings: HashingSettings, longestWaitMs = Infinity) {
  const waiting = availableParallelism() * MAX_WAITING_PER_CORE
  const queue = createSemaphore({ atOnce: HASHES_AT_ONCE, waiting, waitMs: longestWaitMs }, overCapacity)
  observeHashQueue(() => queue.taken().waiting)
  const costly = createSemaphore({ atOnce: 1, waiting: MAX_WAITING_COSTLY, waitMs: longestWaitMs }, overCapacity)
  const options: HashOptions = {
    type: argon2id,
    memoryCost: settings.memoryKib,
    timeCost: settings.passes,
    parallelism: settings.lanes,
  }
  const decoy = await hash('no user has this password', options)
  // Our hashes are recognised by their parameters: an operator may choose larger ones than the bounds on imported
  // hashes.
  const ours = decoy.slice(0, decoy.lastIndexOf('$', decoy.lastIndexOf('$') - 1) + 1)
  return {
    /** Hashes with a random salt, or with the given one to get equal hashes of equal passwords. */
    hash: (password: string, salt?: Buffer): Promise<string> =>
      queued(queue, () => hash(password, { ...options, ...(salt ? { salt } : {}) })),
    /**
     * Verifies against our hash or an imported one; false for a corrupt one. Without a hash (unknown user, no password)
     * it does the same work against a decoy and answers false, so that time reveals nothing. An imported hash takes its
     * own time, until the next sign-in replaces it.
     */
    async verify(storedHash: string | null | undefined, password: string): Promise<boolean> {
      const candidate = storedHash || decoy
      const verify = () => queued(queue, () => verifyImported(candidate, password))
      const isAlone = !candidate.startsWith(ours) && isCostly(candidate)
      const matches = await (isAlone ? queued(costly, verify) : verify())
      return matches && Boolean(storedHash)
    },
    /** Whether the hash, just verified with this password, should be replaced by one of today's parameters. */
    needsRehash: (storedHash: string, password: string): boolean =>
      !storedHash.startsWith(ours) && !readsOnlyTheBeginning(storedHash, password),
  }
}
