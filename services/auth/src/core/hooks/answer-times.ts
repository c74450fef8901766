import { setTimeout as sleep } from 'node:timers/promises'
import type { HookPoint } from '../../adapters/hooks/points.ts'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'

/** Answers whose times are kept. */
const RECENT = 16

/**
 * Times of the recent answers of each hook, for requests that must take as long without asking. Each wait is one of
 * them at random: the last one alone would be recognized by a caller who has just caused it.
 */
export function createAnswerTimes(random: RandomBytes) {
  const recent = new Map<HookPoint, number[]>()
  const failing = new Set<HookPoint>()
  return {
    answered(point: HookPoint, ms: number): void {
      recent.set(point, [ms, ...(recent.get(point) ?? [])].slice(0, RECENT))
      failing.delete(point)
    },
    failed: (point: HookPoint): void => void failing.add(point),
    /** Whether the last question was answered. */
    isAnswering: (point: HookPoint): boolean => recent.has(point) && !failing.has(point),
    async wait(point: HookPoint): Promise<void> {
      const times = recent.get(point)
      if (times) await sleep(times[(random(1)[0] ?? 0) % times.length])
    },
  }
}
