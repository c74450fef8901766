import { keepListening } from '@services/common/keep-listening'
import type { Logger } from '@services/common/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'
import { findOutcomes } from './results.store.ts'

export type Decision =
  | { state: 'ready' }
  | { state: 'failed'; code: ErrorCode; details: Record<string, unknown> | null }
  /** Its last clip was deleted before it was made. */
  | { state: 'gone' }

/**
 * Tells requests that wait when their source is decided, wherever it was transcoded: workers NOTIFY in the transaction
 * that decides it, every process LISTENs on one connection.
 */
export interface Results {
  /** The decision, or undefined when the signal aborts first. */
  wait(sourceId: string, signal: AbortSignal): Promise<Decision | undefined>
  close(): Promise<void>
}

/** A notification can be lost while the connection is replaced; then a waiting request learns it this much later. */
const LOOK_EVERY_MS = 1_000

export function openResults(options: { db: Kysely<DB>; url: string; channel: string; log: Logger }): Results {
  const { db, log } = options
  const waiting = new Map<string, Set<(decision: Decision) => void>>()
  let isLooking = false

  const look = async (ids: string[]) => {
    if (ids.length === 0) return
    const outcomes = new Map((await findOutcomes(db, ids)).map((outcome) => [outcome.id, outcome]))
    for (const id of ids) {
      const decision = toDecision(outcomes.get(id))
      if (decision) for (const tell of waiting.get(id) ?? []) tell(decision)
    }
  }
  const lookQuietly = (ids: string[]) =>
    look(ids).catch((err) => log.debug({ err }, 'results could not be read, will try again'))

  const timer = setInterval(async () => {
    if (isLooking) return
    isLooking = true
    await lookQuietly([...waiting.keys()])
    isLooking = false
  }, LOOK_EVERY_MS)
  timer.unref()

  const listener = keepListening({
    ...{ url: options.url, applicationName: 'media results', channel: options.channel, log },
    onNotification: (sourceId) => {
      if (waiting.has(sourceId)) void lookQuietly([sourceId])
    },
    onListening: () => void lookQuietly([...waiting.keys()]),
  })

  return {
    wait: async (sourceId, signal) => {
      const { promise, resolve } = Promise.withResolvers<Decision | undefined>()
      const tell = (decision: Decision) => resolve(decision)
      const giveUp = () => resolve(undefined)
      const others = waiting.get(sourceId) ?? new Set()
      waiting.set(sourceId, others.add(tell))
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        if (signal.aborted) return undefined
        // It may have been decided before this request began to wait.
        await lookQuietly([sourceId])
        return await promise
      } finally {
        signal.removeEventListener('abort', giveUp)
        others.delete(tell)
        if (others.size === 0) waiting.delete(sourceId)
      }
    },
    close: async () => {
      clearInterval(timer)
      await (await listener).close()
    },
  }
}

function toDecision(outcome: Awaited<ReturnType<typeof findOutcomes>>[number] | undefined): Decision | undefined {
  if (!outcome) return { state: 'gone' }
  const { state, error_code, error_details } = outcome
  if (state === 'processing') return undefined
  return state === 'failed' ? { state, code: error_code ?? 'internal', details: error_details } : { state }
}
