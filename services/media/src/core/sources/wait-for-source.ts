// Waits of requests until a source is ready or has failed. How long, and what is answered: http/answer-clip.ts.
import type { NotifyMode } from '@services/common/database/settings'
import { keepListening, type ListenOptions } from '@services/common/listen/listener'
import type { Kysely } from 'kysely'
import type { MediaInfo } from '../../db/media-info.ts'
import type { DB } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'
import { findOutcomes } from './sources.store.ts'

export type Decision =
  /** `info`: facts as its files show them. */
  | { state: 'ready'; info: MediaInfo }
  /** Poster and mp4 can be shown, the rest is being encoded; only for waits `until` showable. */
  | { state: 'processing' }
  | { state: 'failed'; code: ErrorCode; details: Record<string, unknown> | null }
  /** The last clip was deleted before the source was ready. */
  | { state: 'gone' }

type Until = 'decided' | 'showable'

/** Wakes requests that wait for a source: workers NOTIFY when it changes, every process LISTENs. */
export interface SourceWaiters {
  /** Returns undefined when the signal aborts first. */
  wait(sourceId: string, signal: AbortSignal, until?: Until): Promise<Decision | undefined>
  close(): Promise<void>
}

/** Delay without notifications, or when one is lost, as it may be while the connection is replaced. */
const READ_EVERY_MS = { batched: 1_000, each: 1_000, none: 500 }

interface ResultsOptions extends Pick<ListenOptions, 'channel' | 'log' | 'execute'> {
  db: Kysely<DB>
  database: Pick<ListenOptions, 'url' | 'fallbackUrls'>
  mode: NotifyMode
}

export function openSourceWaiters(options: ResultsOptions): SourceWaiters {
  const { db, log, mode, channel, execute } = options
  const waiting = new Map<string, Set<Waiter>>()
  let isReading = false

  const read = async (ids: string[]) => {
    if (ids.length === 0) return
    const outcomes = new Map((await findOutcomes(db, ids)).map((outcome) => [outcome.id, outcome]))
    for (const id of ids) {
      for (const { until, resolve } of waiting.get(id) ?? []) {
        const decision = toDecision(outcomes.get(id), until)
        if (decision) resolve(decision)
      }
    }
  }
  const readQuietly = (ids: string[]) => read(ids).catch((err) => log.debug({ err }, 'results not read, will retry'))

  const timer = setInterval(async () => {
    if (isReading) return
    isReading = true
    await readQuietly([...waiting.keys()])
    isReading = false
  }, READ_EVERY_MS[mode])
  timer.unref()

  const listener =
    mode === 'none'
      ? undefined
      : keepListening({
          ...{ ...options.database, applicationName: 'media results', channel, log, execute },
          onNotification: (sourceId) => {
            if (waiting.has(sourceId)) void readQuietly([sourceId])
          },
          onListening: () => void readQuietly([...waiting.keys()]),
        })

  return {
    wait: async (sourceId, signal, until = 'decided') => {
      const { promise, resolve } = Promise.withResolvers<Decision | undefined>()
      const giveUp = () => resolve(undefined)
      const others = waiting.get(sourceId) ?? new Set()
      const waiter: Waiter = { until, resolve }
      waiting.set(sourceId, others.add(waiter))
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        if (signal.aborted) return undefined
        // The source may have been decided before this request began to wait.
        await readQuietly([sourceId])
        return await promise
      } finally {
        signal.removeEventListener('abort', giveUp)
        others.delete(waiter)
        if (others.size === 0) waiting.delete(sourceId)
      }
    },
    close: async () => {
      clearInterval(timer)
      await (await listener)?.close()
    },
  }
}

interface Waiter {
  until: Until
  resolve: (decision: Decision) => void
}

type Outcome = Awaited<ReturnType<typeof findOutcomes>>[number]

function toDecision(outcome: Outcome | undefined, until: Until): Decision | undefined {
  if (!outcome) return { state: 'gone' }
  const { state, info, error_code, error_details } = outcome
  if (state === 'processing') return until === 'showable' && outcome.isShowable ? { state } : undefined
  return state === 'failed' ? { state, code: error_code ?? 'internal', details: error_details } : { state, info }
}
