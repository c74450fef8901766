// Domains and blocks of numbers whose last attempt got no answer in time: each message would hold a slot for half a
// minute. Until it is answered again such a group has one slot of this process, among those for retries.
import type { QueueJob } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'

/** Groups remembered at once; the earliest is forgotten, and costs slots once more. */
const MAX_SILENT = 10_000

/** The message goes back to the queue, behind first attempts, without an attempt. */
export class NotAttempted extends TemporaryFailure {}

export type SilentGroups = ReturnType<typeof createSilentGroups>

export function createSilentGroups() {
  const silent = new Set<string>()
  const underWay = new Map<string, number>()
  const add = (group: string) => {
    const [earliest] = silent
    if (silent.size >= MAX_SILENT && earliest !== undefined) silent.delete(earliest)
    silent.add(group)
  }
  return {
    /** Makes the attempt of a job and learns from it. Throws NotAttempted if the group is silent and has its slot. */
    async attempt(
      { group = '', retryCount }: Pick<QueueJob<unknown>, 'group' | 'retryCount'>,
      make: () => Promise<void>,
    ) {
      const others = underWay.get(group) ?? 0
      if (silent.has(group) && (retryCount === 0 || others > 0)) {
        throw new NotAttempted('not attempted: another message to this domain or block of numbers waits for an answer')
      }
      underWay.set(group, others + 1)
      try {
        await make()
        silent.delete(group)
      } catch (error) {
        if (error instanceof TemporaryFailure && error.timedOut) add(group)
        else silent.delete(group)
        throw error
      } finally {
        const left = (underWay.get(group) ?? 1) - 1
        if (left > 0) underWay.set(group, left)
        else underWay.delete(group)
      }
    },
  }
}
