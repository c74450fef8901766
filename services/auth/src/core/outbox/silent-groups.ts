// Domains and blocks of numbers by their upstream's last answer: a message that gets none holds a slot for half a
// minute. A group has one slot of this process until it is answered. After a silence that is one of those for retries.
import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'

/** Groups remembered at once; the earliest is forgotten, and begins with one slot again. */
const MAX_GROUPS = 10_000

/**
 * Longest wait of a new group's other messages, in slots of theirs, for the answer to its first. Most servers answer
 * within it, so no message goes back to the queue. With a longer wait, hanging domains would delay mail to others.
 */
const FIRST_ANSWER_WITHIN_MS = 500

/** The message goes back to the queue, behind first attempts, without an attempt. */
export class NotAttempted extends TemporaryFailure {}

export type SilentGroups = ReturnType<typeof createSilentGroups>

export function createSilentGroups() {
  const states = new Map<string, 'answered' | 'silent'>()
  const underWay = new Map<string, { count: number; first: Promise<unknown> }>()
  const set = (group: string, state: 'answered' | 'silent') => {
    states.delete(group)
    const [earliest] = states.keys()
    if (states.size >= MAX_GROUPS && earliest !== undefined) states.delete(earliest)
    states.set(group, state)
  }
  /** Waits for the first message of a new group; its silence begins when no answer came in time. */
  const waitForFirst = async (group: string, first: Promise<unknown>) => {
    const isLate = Symbol('late')
    const ended = await Promise.race([first, sleep(FIRST_ANSWER_WITHIN_MS, isLate, { ref: false })])
    if (ended === isLate && !states.has(group)) set(group, 'silent')
  }
  return {
    /**
     * Makes the attempt of a job. Throws NotAttempted instead if its group was not answered last and has its slot. An
     * attempt without a group is a request's own: it takes no slot of the queue.
     */
    async withSlot(
      { group, retryCount }: Pick<QueueJob<unknown>, 'group' | 'retryCount'>,
      attempt: () => Promise<void>,
    ): Promise<void> {
      if (group === undefined) return attempt()
      const before = underWay.get(group)
      if (before && !states.has(group)) await waitForFirst(group, before.first)
      const state = states.get(group)
      const others = underWay.get(group)
      if (state !== 'answered' && (others || (state === 'silent' && retryCount === 0))) {
        throw new NotAttempted('not attempted: another message to this domain or block of numbers waits for an answer')
      }
      const running = attempt()
      const first = others?.first ?? running.catch(() => {})
      underWay.set(group, { count: (others?.count ?? 0) + 1, first })
      try {
        await running
      } finally {
        const count = (underWay.get(group)?.count ?? 1) - 1
        if (count > 0) underWay.set(group, { count, first })
        else underWay.delete(group)
      }
    },
    /**
     * Sends a message and learns from the upstream's answer, or its silence. Any other failure says nothing of the
     * group.
     */
    async observe<Result>(group: string | undefined, send: () => Promise<Result>): Promise<Result> {
      if (group === undefined) return send()
      try {
        const result = await send()
        set(group, 'answered')
        return result
      } catch (error) {
        const upstream = error instanceof TemporaryFailure ? error.upstream : undefined
        if (upstream === 'silent') set(group, 'silent')
        if (upstream === 'answered' || error instanceof PermanentFailure) set(group, 'answered')
        throw error
      }
    },
  }
}
