// Domains and blocks of numbers whose last attempt got no answer in time: each message would hold a slot for half a
// minute. Until it is answered again such a group has one slot of this process, among those for retries.
import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
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
    silent.delete(group)
    const [earliest] = silent
    if (silent.size >= MAX_SILENT && earliest !== undefined) silent.delete(earliest)
    silent.add(group)
  }
  return {
    /** Makes the attempt of a job. Throws NotAttempted instead if the group is silent and has its slot. */
    async withSlot(
      { group = '', retryCount }: Pick<QueueJob<unknown>, 'group' | 'retryCount'>,
      attempt: () => Promise<void>,
    ): Promise<void> {
      const others = underWay.get(group) ?? 0
      if (silent.has(group) && (retryCount === 0 || others > 0)) {
        throw new NotAttempted('not attempted: another message to this domain or block of numbers waits for an answer')
      }
      underWay.set(group, others + 1)
      try {
        await attempt()
      } finally {
        const left = (underWay.get(group) ?? 1) - 1
        if (left > 0) underWay.set(group, left)
        else underWay.delete(group)
      }
    },
    /** Sends a message and learns from the upstream's answer, or its silence. Any other failure says nothing of the group. */
    async observe<Result>(group = '', send: () => Promise<Result>): Promise<Result> {
      try {
        const result = await send()
        silent.delete(group)
        return result
      } catch (error) {
        const upstream = error instanceof TemporaryFailure ? error.upstream : undefined
        if (upstream === 'silent') add(group)
        if (upstream === 'answered' || error instanceof PermanentFailure) silent.delete(group)
        throw error
      }
    },
  }
}
