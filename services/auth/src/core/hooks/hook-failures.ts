import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { HookPoint } from '../../adapters/hooks/points.ts'
import type { DB } from '../../db/tables.ts'
import { insertHookFailure } from './hook-failures.store.ts'

export interface HookFailure {
  questionId: string
  /** Code of the error. */
  result: string
  /** Cause without data of the user; the SQLSTATE of an error in PostgreSQL. */
  reason: string
}

/** Interval of the rows that a process writes for one point: an outage of a hook is no load for the database. */
const WRITE_EVERY_MS = 10_000

/** Longest reason that is kept. */
const MAX_REASON = 500

/** Keeps the last failures of hooks in the database. A hook that answers causes no statement. */
export function createHookFailures({
  db,
  log,
  now,
  newRowId,
}: {
  db: Kysely<DB>
  log: Logger
  now: () => Date
  newRowId: () => string
}) {
  const written = new Map<HookPoint, { atMs: number; skipped: number }>()
  const writes = new Set<Promise<void>>()
  return {
    /** Writes the failure behind the request, or counts it for the next row. */
    record(point: HookPoint, { questionId, result, reason }: HookFailure): void {
      const at = now()
      const last = written.get(point)
      if (last && at.getTime() < last.atMs + WRITE_EVERY_MS) {
        last.skipped++
        return
      }
      written.set(point, { atMs: at.getTime(), skipped: 0 })
      const failure = {
        id: newRowId(),
        point,
        result,
        reason: storable(reason),
        question_id: questionId,
        failed_at: at,
      }
      const write = insertHookFailure(db, { ...failure, failures: 1 + (last?.skipped ?? 0) })
        .catch((err) => log.warn({ err, hook: point }, 'failure of a hook could not be stored'))
        .finally(() => writes.delete(write))
      writes.add(write)
    },
    /** Waits for rows that are being written. */
    written: async (): Promise<void> => void (await Promise.all(writes)),
  }
}

/** PostgreSQL stores no NUL and no half of a surrogate pair. */
const storable = (text: string) => text.slice(0, MAX_REASON).toWellFormed().replaceAll('\0', '')
