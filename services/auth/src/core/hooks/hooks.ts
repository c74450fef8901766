// Hooks: the operator's own code, asked at seven points (contract/auth-hooks.md). Each answer decides at once, so a
// request waits for it: never inside a transaction, except for a function in this database. How a transaction asks:
// questions.ts. Transports: ../../adapters/hooks/. Guide: docs/ask-your-own-code.md.
import { setTimeout as wait } from 'node:timers/promises'
import { createSemaphore } from '@services/common/concurrency/semaphore'
import { openDatabase } from '@services/common/database/pool'
import { disconnectSignal } from '@services/common/request-deadline'
import { resultOf } from '@services/common/telemetry/instruments'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import { askFunction } from '../../adapters/hooks/function-hook.ts'
import { type HookAnswer, unfit } from '../../adapters/hooks/hook-answer.ts'
import { describeTarget } from '../../adapters/hooks/hook-uri.ts'
import { askByHttp } from '../../adapters/hooks/http-hook.ts'
import type { HookPoint, Question } from '../../adapters/hooks/points.ts'
import { signedHeaders } from '../../adapters/hooks/signing-secrets.ts'
import type { HookSettings } from '../../config/hooks/hook-variables.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countHookCall } from '../../metrics.ts'
import { type AuditLog, originOf } from '../audit/audit.ts'
import { type HookAnswers, type HookPayloads, membersOf } from './payloads.ts'

interface HooksDeps {
  db: Kysely<DB>
  log: Logger
  now: () => Date
  newId: () => string
  config: Pick<Config, 'database' | 'hooks' | 'telemetry'>
}

export type Hooks = ReturnType<typeof createHooks>

interface Asking {
  /** Id of the question; the same for a message that is sent again. */
  id?: string
  /** Transaction to run a function of this database in. */
  trx?: Kysely<DB>
  /** Fewer attempts than those of the settings, for a caller that asks again later. */
  maxAttempts?: number | undefined
  /** The question is made and signed, and not sent. */
  isPretended?: boolean
}

/** Connections to another database; each call holds one for its duration. */
const MAX_CONNECTIONS = 10

/** Waiting transactions per connection of the pool; the next ones are refused at once. */
const WAITING_PER_CONNECTION = 10

const overCapacity = () => apiError('over_capacity', { retryAfterSeconds: 2 })

const failures = new WeakMap<object, HookPoint>()

/** Returns the hook that refused, or gave no answer; undefined for any other failure. */
export const hookBehind = (error: unknown): HookPoint | undefined => failures.get(Object(error))

/** Marks a failure as that of a hook. */
export function causedBy<Failure extends object>(point: HookPoint, failure: Failure): Failure {
  failures.set(failure, point)
  return failure
}

export function createHooks({ db, log: processLog, now, newId, config }: HooksDeps) {
  const { hooks } = config
  const others = new Map<string, ReturnType<typeof openDatabase>>()
  const lastMs = new Map<HookPoint, number>()
  const within = Object.values(hooks).filter(isOfThisDatabase)
  const { maxPoolSize } = config.database
  const slots = createSemaphore(
    {
      atOnce: Math.max(1, Math.floor(maxPoolSize / 2)),
      waiting: maxPoolSize * WAITING_PER_CONNECTION,
      waitMs: Math.max(0, ...within.map((hook) => hook?.timeoutSeconds ?? 0)) * 1000,
    },
    overCapacity,
  )

  /** Opened at the first call: a database that is away delays no start. */
  function databaseOf(url: string) {
    const open =
      others.get(url) ??
      openDatabase({
        url,
        maxPoolSize: MAX_CONNECTIONS,
        applicationName: 'auth-hooks',
        log: processLog,
        isTraced: config.telemetry.tracing,
      })
    others.set(url, open)
    return open.db
  }

  function send(
    hook: HookSettings & { isSecret: boolean },
    question: Question,
    trx: Kysely<DB> | undefined,
  ): Promise<HookAnswer> {
    const { target, databaseUrl, ...settings } = hook
    if (target.kind === 'http') return askByHttp({ ...settings, url: target.url }, question, now)
    return askFunction(databaseUrl ? databaseOf(databaseUrl) : (trx ?? db), { ...settings, target }, question)
  }

  return {
    has: (point: HookPoint): boolean => hooks[point] !== undefined,

    /** Whether a transaction may ask: the hook is a function in this database, and waits on its connection. */
    isWithin: (point: HookPoint): boolean => isOfThisDatabase(hooks[point]),

    /**
     * Runs a transaction that may ask. Where functions answer, such transactions share half of the pool: each holds a
     * connection while its function runs or its user is locked. Throws over_capacity after a hook's time.
     */
    runAsking<Result>(run: () => Promise<Result>): Promise<Result> {
      if (within.length === 0) return run()
      const signal = disconnectSignal(overCapacity)
      return slots.run(run, signal && { signal })
    },

    /**
     * Asks an enabled hook and returns the members of its answer that the point reads. Throws hook_rejected for a
     * refusal, and a hook_… error or unexpected_failure where the hook gave no answer.
     */
    async ask<Point extends HookPoint>(
      point: Point,
      log: AuditLog,
      payload: HookPayloads[Point],
      { id = newId(), trx, maxAttempts = Infinity, isPretended = false }: Asking = {},
    ): Promise<HookAnswers[Point]> {
      const hook = hooks[point]
      if (!hook) throw new Error(`the hook ${point} is disabled`)
      const ip = originOf(log)?.ip
      const metadata = { uuid: id, time: now().toISOString(), name: point, ...(ip ? { ip_address: ip } : {}) }
      const question = { id, body: JSON.stringify({ metadata, ...payload }) }
      if (isPretended) {
        signedHeaders(hook.signers, { ...question, now: now() })
        return {}
      }
      const attempts = Math.min(hook.attempts, maxAttempts)
      const begun = performance.now()
      const report = (result: string, error?: unknown) => {
        const micros = Math.round((performance.now() - begun) * 1000)
        countHookCall(point, result, micros / 1e6)
        lastMs.set(point, micros / 1000)
        logCall(log, { point, uri: describeTarget(hook.target), id, result, micros, error })
      }
      try {
        const members = membersOf(point, await send({ ...hook, attempts, isSecret: isSecret(point) }, question, trx))
        if (!members) throw unfit('a member has the wrong type')
        report('ok')
        return members
      } catch (error) {
        report(resultOf(error), error)
        failures.set(Object(error), point)
        throw error
      }
    },

    /** Waits as long as the last question of an enabled hook took, so that time does not reveal an account. */
    waitAsLong: async (point: HookPoint): Promise<void> => {
      const ms = lastMs.get(point)
      if (ms !== undefined) await wait(ms)
    },

    close: async () => void (await Promise.all([...others.values()].map((other) => other.close()))),
  }
}

const isSecret = (point: HookPoint) => point === 'send-email' || point === 'send-sms'

const isOfThisDatabase = (hook: Config['hooks'][HookPoint]): boolean =>
  hook?.target.kind === 'function' && hook.databaseUrl === undefined

interface Call {
  point: HookPoint
  uri: string
  id: string
  result: string
  micros: number
  error: unknown
}

/** A refusal is an answer: the call succeeded. */
function logCall(log: AuditLog, { point, uri, id, result, micros, error }: Call): void {
  const success = result === 'ok' || result === 'hook_rejected'
  const facts = { action: 'run_hook', hook: point, uri, hookId: id, success, result, duration: micros }
  if (success) log.info(facts, 'hook asked')
  else log.warn({ ...facts, reason: reasonOf(error) }, 'hook failed')
}

/** The cause says more than the public text. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message : message
}
