import { availableParallelism } from 'node:os'
import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { TestService } from './service.ts'

/**
 * Keeps the queue of password hashes full, from when it resolves until the returned function is called. A test may call
 * it inside a request, which these hashes do not belong to.
 */
export async function fillHashQueue({ deps: { passwords } }: TestService): Promise<() => Promise<void>> {
  const full = Promise.withResolvers<void>()
  let isOver = false
  const keepBusy = async () => {
    while (!isOver) {
      await regardlessOfDeadline(() => passwords.hash('x')).catch(() => {
        full.resolve()
        return new Promise(setImmediate)
      })
    }
  }
  // More than the 80 that may wait for each core, and than those at work. Each has its next one hashed as soon as a
  // slot is free.
  const others = Array.from({ length: availableParallelism() * 80 + 100 }, keepBusy)
  await full.promise
  return async () => {
    isOver = true
    await Promise.all(others)
  }
}
