// Domains and blocks of numbers by their upstream's last answer: a message that gets none holds a slot for half a
// minute. A group has one slot of this process until it is answered. After a silence that is one of those for retries.
// A quarter of the slots is for groups that are answered: any number of others may hang for the first time at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'

/** Groups remembered at once; the earliest is forgotten, and begins with one slot again. */
const MAX_GROUPS = 10_000

/**
 * Longest wait of a message, in its slot, for the answer to another one. Most servers answer within it, so no message
 * goes back to the queue. With a longer wait, hanging domains would delay mail to others.
 */
const ANSWER_WITHIN_MS = 500

/** Share of the slots that groups without an answer may hold together. */
const UNANSWERED_SHARE = 0.75

/** The message goes back to the queue, behind first attempts, without an attempt. */
export class NotAttempted extends TemporaryFailure {}

export type SilentGroups = ReturnType<typeof createSilentGroups>

/** `slots`: those of the channel's queue in this process; attempts of requests take none. */
export function createSilentGroups(slots = Number.POSITIVE_INFINITY) {
  const maxUnanswered = Math.max(1, Math.floor(slots * UNANSWERED_SHARE))
  const states = new Map<string, 'answered' | 'silent'>()
  const underWay = new Map<string, { count: number; first: Promise<unknown> }>()
  /** Attempts for groups that were not answered when they began. */
  const unanswered = new Set<Promise<unknown>>()
  /** True once a message has waited in vain for the end of one of them, until one ends. */
  let isStuck = false
  const set = (group: string, state: 'answered' | 'silent') => {
    states.delete(group)
    const [earliest] = states.keys()
    if (states.size >= MAX_GROUPS && earliest !== undefined) states.delete(earliest)
    states.set(group, state)
  }
  /** Waits for the first message of a new group; its silence begins when no answer came in time. */
  const waitForFirst = async (group: string, first: Promise<unknown>) => {
    if ((await isLate(first, deadline())) && !states.has(group)) set(group, 'silent')
  }
  const requireOwnSlot = (group: string, retryCount: number) => {
    const state = states.get(group)
    if (state === 'answered' || !(underWay.has(group) || (state === 'silent' && retryCount === 0))) return
    throw new NotAttempted('not attempted: another message to this domain or block of numbers waits for an answer')
  }
  const isFull = (group: string) => states.get(group) !== 'answered' && unanswered.size >= maxUnanswered
  const begin = (group: string, attempt: () => Promise<void>) => {
    const running = attempt().finally(() => {
      const count = (underWay.get(group)?.count ?? 1) - 1
      if (count > 0) underWay.set(group, { count, first })
      else underWay.delete(group)
      if (unanswered.delete(ended)) isStuck = false
    })
    const ended = running.catch(() => {})
    const others = underWay.get(group)
    const first = others?.first ?? ended
    underWay.set(group, { count: (others?.count ?? 0) + 1, first })
    if (states.get(group) !== 'answered') unanswered.add(ended)
    return running
  }
  return {
    /**
     * Makes the attempt of a job. Throws NotAttempted instead if its group was not answered last and has its slot, or
     * if such groups have all of theirs. An attempt without a group is a request's own: it takes no slot of the queue.
     */
    async withSlot(
      { group, retryCount }: Pick<QueueJob<unknown>, 'group' | 'retryCount'>,
      attempt: () => Promise<void>,
    ): Promise<void> {
      if (group === undefined) return attempt()
      const before = underWay.get(group)
      if (before && !states.has(group)) await waitForFirst(group, before.first)
      requireOwnSlot(group, retryCount)
      const late = isFull(group) ? deadline() : undefined
      // No await between the last check and the beginning.
      while (late && isFull(group)) {
        if (isStuck) throw new NotAttempted('not attempted: messages to other domains or numbers wait for an answer')
        isStuck = await isLate(Promise.race(unanswered), late)
        requireOwnSlot(group, retryCount)
      }
      return begin(group, attempt)
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

const deadline = () => sleep(ANSWER_WITHIN_MS, true, { ref: false })

/** Whether the deadline comes before a promise that never rejects. */
const isLate = (promise: Promise<unknown>, late: Promise<boolean>): Promise<boolean> =>
  Promise.race([promise.then(() => false), late])
