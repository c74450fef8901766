// Ends of attempts whose receiver accepted the event, which a round records together: under load, one statement for
// several. A row that is locked, such as one of a user who is being deleted, waits alone.
import type { Logger } from '@services/common/telemetry/logger'
import type { AttemptResult } from '@services/common/webhooks/attempt-result'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Claimed } from './claims.store.ts'
import { type AcceptedAttempt, bringNext, type Ended, endAccepted, endAttempt } from './deliveries.store.ts'

interface Deps {
  db: Kysely<DB>
  log: Logger
  now: () => Date
}

/** An attempt until a round; it resolves to undefined if its row is locked or the attempt was lost. */
interface Waiting extends AcceptedAttempt {
  resolve(ended: Ended | undefined): void
  reject(error: unknown): void
}

export function createAcceptedAttempts({ db, log, now }: Deps) {
  const waiting: Waiting[] = []
  /** Users whose next delivery is still put off. */
  const freed: Ended[] = []

  async function endWaiting(): Promise<void> {
    const recording = waiting.splice(0)
    if (recording.length === 0) return
    try {
      const ended = await endAccepted(db, recording)
      freed.push(...ended)
      for (const { webhook_id, id, resolve } of recording) {
        resolve(ended.find((end) => end.webhook_id === webhook_id && end.id === id))
      }
    } catch (error) {
      for (const { reject } of recording) reject(error)
    }
  }

  async function bringFreed(): Promise<number> {
    const bringing = freed.splice(0)
    if (bringing.length === 0) return 0
    try {
      return await bringNext(db, bringing, now())
    } catch (err) {
      freed.push(...bringing)
      log.warn({ err }, 'events not brought forward, will retry')
      return 0
    }
  }

  return {
    isWaiting: () => waiting.length > 0,
    /** Records what waits. Returns whether events waited for it in their turn. */
    async record(): Promise<boolean> {
      await endWaiting()
      return (await bringFreed()) > 0
    },
    /** Ends the attempt with the next round. Resolves to undefined if it was lost and another one has begun. */
    async end(attempt: Claimed, result: AttemptResult): Promise<Pick<Ended, 'failures'> | undefined> {
      const { promise, resolve, reject } = Promise.withResolvers<Ended | undefined>()
      waiting.push({ ...attempt, status: result.status, resolve, reject })
      const ended = await promise
      if (ended) return ended
      const endedAlone = await endAttempt(db, attempt, result, { state: 'delivered' })
      if (endedAlone) await bringNext(db, [attempt], now())
      return endedAlone
    },
  }
}
