// Hooks: the operator's own code, asked at seven points (contract/auth-hooks.md). Each answer decides at once, so a
// request waits for it: never inside a transaction, except for a function in this database. How a transaction asks:
// questions.ts. Transports: ../../adapters/hooks/. Guide: docs/ask-your-own-code.md.
import { createSemaphore } from '@services/common/concurrency/semaphore'
import { sqlStateOf } from '@services/common/database/errors'
import { openDatabase } from '@services/common/database/pool'
import { disconnectSignal } from '@services/common/request-deadline'
import { resultOf } from '@services/common/telemetry/instruments'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import { askFunction, FunctionError, type FunctionHookSettings } from '../../adapters/hooks/function-hook.ts'
import { type HookAnswer, unfit } from '../../adapters/hooks/hook-answer.ts'
import { describeTarget } from '../../adapters/hooks/hook-uri.ts'
import { askByHttp } from '../../adapters/hooks/http-hook.ts'
import { HOOK_NAMES, type HookPoint, type Question } from '../../adapters/hooks/points.ts'
import { signedHeaders } from '../../adapters/hooks/signing-secrets.ts'
import type { HookSettings } from '../../config/hooks/hook-variables.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countHookCall } from '../../metrics.ts'
import { type AuditLog, originOf } from '../audit/audit.ts'
import type { RandomBytes } from '../one-time-tokens/one-time-token.ts'
import { createAnswerTimes } from './answer-times.ts'
import type { HookFailure } from './hook-failures.ts'
import { type HookAnswers, type HookPayloads, membersOf } from './payloads.ts'

interface HooksDeps {
  db: Kysely<DB>
  log: Logger
  now: () => Date
  newId: () => string
  random: RandomBytes
  config: Pick<Config, 'database' | 'hooks' | 'telemetry'>
  /** Stores a failure, without delay. */
  recordFailure?: (point: HookPoint, failure: HookFailure) => void
}

export type Hooks = ReturnType<typeof createHooks>

interface Asking {
  /** Id of the question; the same for a message that is sent again. */
  id?: string
  /** Transaction to run a function of this database in. */
  trx?: Kysely<DB> | undefined
  /** A function leaves no trace. */
  isUndone?: boolean
  /** Fewer attempts than those of the settings, for a caller that asks again later. */
  maxAttempts?: number | undefined
  /** The question is made and signed, and not sent. */
  isPretended?: boolean
}

/** Connections to another database; each call holds one for its duration. */
const MAX_CONNECTIONS = 10

/** Connections of a pool without a limit: less than half of the hundred that PostgreSQL has by default. */
const ASSUMED_CONNECTIONS = 40

/** Waiting transactions per connection of the pool; the next ones are refused at once. */
const WAITING_PER_CONNECTION = 10

/**
 * Points whose function is asked in the transaction of the request. That of an attempt has a transaction of its own,
 * because what it writes must last when the attempt is refused.
 */
const IN_TRANSACTIONS: ReadonlySet<HookPoint> = new Set(['before-user-created', 'customize-access-token'])

const overCapacity = () => apiError('over_capacity', { retryAfterSeconds: 2 })

const failures = new WeakMap<object, HookPoint>()

/** Returns the hook that refused, or gave no answer; undefined for any other failure. */
export const hookBehind = (error: unknown): HookPoint | undefined => failures.get(Object(error))

export const isRefusal = (error: unknown): boolean => (error as { code?: unknown }).code === 'hook_rejected'

/** Marks a failure as that of a hook. */
export function causedBy<Failure extends object>(point: HookPoint, failure: Failure): Failure {
  failures.set(failure, point)
  return failure
}

export function createHooks({ db, log: processLog, now, newId, random, config, recordFailure }: HooksDeps) {
  const { hooks } = config
  const others = new Map<string, ReturnType<typeof openDatabase>>()
  const times = createAnswerTimes(random)
  const within = Object.values(hooks).filter(isOfThisDatabase)
  const connections = config.database.maxPoolSize || ASSUMED_CONNECTIONS
  const slots = createSemaphore(
    {
      atOnce: Math.max(1, Math.floor(connections / 2)),
      waiting: connections * WAITING_PER_CONNECTION,
      waitMs: Math.max(0, ...within.map((hook) => hook?.timeoutSeconds ?? 0)) * 1000,
    },
    overCapacity,
  )

  const isWithin = (point: HookPoint) => IN_TRANSACTIONS.has(point) && isOfThisDatabase(hooks[point])
  const asksWithin = HOOK_NAMES.some(isWithin)

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

  /**
   * Runs work that may wait for functions of this database. It shares half of the pool, so that functions that hang
   * leave the other half to other requests. Throws over_capacity after a hook's time.
   */
  function withShare<Result>(work: () => Promise<Result>): Promise<Result> {
    const signal = disconnectSignal(overCapacity)
    return slots.run(work, signal && { signal })
  }

  function send(
    hook: HookSettings & Omit<FunctionHookSettings, 'target'>,
    question: Question,
    trx: Kysely<DB> | undefined,
  ): Promise<HookAnswer> {
    const { target, databaseUrl, ...settings } = hook
    if (target.kind === 'http') return askByHttp({ ...settings, url: target.url }, question, now)
    const handle = databaseUrl ? databaseOf(databaseUrl) : trx
    if (handle) return askFunction(handle, { ...settings, target }, question)
    return withShare(() => askFunction(db, { ...settings, target }, question))
  }

  /**
   * Asks an enabled hook and returns the members of its answer that the point reads. Throws hook_rejected for a
   * refusal, and a hook_… error or unexpected_failure where the hook gave no answer, unless it fails open.
   */
  async function ask<Point extends HookPoint>(
    point: Point,
    log: AuditLog,
    payload: HookPayloads[Point],
    { id = newId(), trx, maxAttempts = Infinity, isPretended = false, isUndone = false }: Asking = {},
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
    const how = { attempts, isSecret: isSecret(point), hasSavepoint: isHidden(point), isUndone }
    const begun = performance.now()
    const report = (result: string, error?: unknown) => {
      const micros = Math.round((performance.now() - begun) * 1000)
      countHookCall(point, result, micros / 1e6)
      if (isAnswer(result)) times.answered(point, micros / 1000)
      else {
        if (!isUndone) times.failed(point)
        recordFailure?.(point, { questionId: id, result, reason: storedReasonOf(error) })
      }
      logCall(log, { point, uri: describeTarget(hook.target), id, result, micros, error })
    }
    try {
      const members = membersOf(point, await send({ ...hook, ...how }, question, trx))
      if (!members) throw unfit('a member has the wrong type')
      report('ok')
      return members
    } catch (error) {
      report(resultOf(error), error)
      failures.set(Object(error), point)
      if (!hook.failsOpen || isRefusal(error)) throw error
      log.warn({ hook: point }, 'attempt not shown to its hook: it fails open')
      return {}
    }
  }

  return {
    has: (point: HookPoint): boolean => hooks[point] !== undefined,

    /** Whether a transaction asks: the hook is a function in this database, and waits on its connection. */
    isWithin,

    /** Runs a transaction that may ask. Each holds a connection while its function runs or its user is locked. */
    runAsking: <Result>(run: () => Promise<Result>): Promise<Result> => (asksWithin ? withShare(run) : run()),

    ask,

    /**
     * Takes the time of an enabled hook about an account whose existence must stay hidden, and ignores its refusal. A
     * function is asked, and leaves no trace. A hook by HTTP is not: it would learn of a user in vain. It is asked only
     * until it has answered, and again after a failure, which is then that of hidden and other accounts alike.
     */
    async hide<Point extends HookPoint>(
      point: Point,
      log: AuditLog,
      payload: HookPayloads[Point],
      trx?: Kysely<DB>,
    ): Promise<void> {
      const hook = hooks[point]
      if (!hook) return
      if (hook.target.kind === 'http' && times.isAnswering(point)) return times.wait(point)
      await ask(point, log, payload, { trx, isUndone: true }).catch((error) => {
        if (!isRefusal(error)) throw error
      })
    },

    /** Waits as long as a recent answer of a hook took, if there was one. */
    waitAsLong: times.wait,

    close: async () => void (await Promise.all([...others.values()].map((other) => other.close()))),
  }
}

/** Points whose questions reveal by their cost that an address is new, or has an account. */
const isHidden = (point: HookPoint) => point === 'before-user-created'

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
const isAnswer = (result: string) => result === 'ok' || result === 'hook_rejected'

function logCall(log: AuditLog, { point, uri, id, result, micros, error }: Call): void {
  const success = isAnswer(result)
  const facts = { action: 'run_hook', hook: point, uri, hookId: id, success, result, duration: micros }
  if (success) log.info(facts, 'hook asked')
  else log.warn({ ...facts, reason: reasonOf(error) }, 'hook failed')
}

/** An error of PostgreSQL may quote the user, whose deletion does not reach the failures: its SQLSTATE says enough. */
function storedReasonOf(error: unknown): string {
  const { cause } = error as Error
  return cause instanceof FunctionError ? cause.sqlState : (sqlStateOf(error) ?? reasonOf(error))
}

/** The cause says more than the public text. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message : message
}
