// Questions of a transaction to a hook. One by HTTP must not wait inside it, because it holds a connection and locks.
// So the transaction stops at its question and is rolled back, the hook is asked, and the transaction runs again with
// the answer. Its ids are the same in each run, and an answer is used for its own question only. A function in this
// database is asked within the transaction, and sees its rows.
import type { Kysely, Transaction } from 'kysely'
import type { HookPoint } from '../../adapters/hooks/points.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { AuditLog } from '../audit/audit.ts'
import type { Hooks } from './hooks.ts'
import type { HookAnswers, HookPayloads } from './payloads.ts'

export interface QuestionDeps {
  hooks: Pick<Hooks, 'has' | 'isWithin' | 'runAsking' | 'ask' | 'hide' | 'waitAsLong'>
  newId: () => string
  newRowId: () => string
}

declare const canAsk: unique symbol

/** Dependencies of a transaction that may ask; made by `withHooks` alone. */
export type Asking<Deps> = Deps & { [canAsk]: true; questions?: Questions }

interface Asked<Point extends HookPoint> {
  payload: HookPayloads[Point]
  answer: HookAnswers[Point]
}

export interface Questions {
  log: AuditLog
  has(point: HookPoint): boolean
  /** Whether the first question at this point ends the run, so that what was written before it is rolled back. */
  stopsAt(point: HookPoint): boolean
  /** Asks, or returns what was asked under this key before. */
  ask<Point extends HookPoint>(
    db: Kysely<DB>,
    point: Point,
    key: string,
    payload: HookPayloads[Point],
  ): Promise<Asked<Point>>
  /** Asks at most once, after the commit; a failure is that of the request. */
  tell<Point extends HookPoint>(point: Point, read: () => Promise<HookPayloads[Point] | undefined>): void
  /** Does as `ask` does, about an account whose existence must stay hidden. Its answer decides nothing. */
  hide<Point extends HookPoint>(db: Kysely<DB>, point: Point, payload: HookPayloads[Point]): Promise<void>
  /** Takes the time of a question after the commit, about such an account. */
  hideTold(point: HookPoint, read: () => Promise<unknown>): void
}

/** Ends a run of the transaction. No Error: each question would pay for a stack that is never read. */
class Unanswered {
  readonly key: string
  readonly ask: () => Promise<Asked<HookPoint>>

  constructor(key: string, ask: () => Promise<Asked<HookPoint>>) {
    this.key = key
    this.ask = ask
  }
}

/** Points at which a transaction asks. */
const WITHIN_TRANSACTIONS = [
  ...(['before-user-created', 'after-user-created'] as const),
  ...(['customize-access-token', 'mfa-verification'] as const),
]

/** Runs of one transaction: it has three questions at most, and others may change what they are about. */
const MAX_RUNS = 8

/** Counts the messages that `work` sends, and undoes that if it throws. */
export type Counted = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Runs a transaction that creates users or issues tokens: once, or again after each of its questions. `counted` has
 * the transaction alone: when a hook fails after the commit, the messages leave and stay counted.
 */
export async function withHooks<Deps extends QuestionDeps, Result>(
  deps: Deps,
  log: AuditLog,
  run: (asking: Asking<Deps>) => Promise<Result>,
  counted: Counted = (work) => work(),
): Promise<Result> {
  if (!WITHIN_TRANSACTIONS.some(deps.hooks.has)) return counted(() => run(deps as Asking<Deps>))
  const { result, later } = await counted(() => committed(deps, log, run))
  for (const work of later) await work()
  return result
}

/** Runs until the transaction has all answers and commits. Returns the work that follows. */
async function committed<Deps extends QuestionDeps, Result>(
  deps: Deps,
  log: AuditLog,
  run: (asking: Asking<Deps>) => Promise<Result>,
): Promise<{ result: Result; later: (() => Promise<void>)[] }> {
  const { hooks } = deps
  const newId = repeatable(deps.newId)
  const newRowId = repeatable(deps.newRowId)
  const answers = new Map<string, Asked<HookPoint>>()
  for (let runs = 0; runs < MAX_RUNS; runs++) {
    const later: (() => Promise<void>)[] = []
    const questions: Questions = {
      log,
      has: hooks.has,
      stopsAt: (point) => hooks.has(point) && !hooks.isWithin(point),
      async ask(db, point, name, payload) {
        const ask = async (trx?: Kysely<DB>) => ({ payload, answer: await hooks.ask(point, log, payload, { trx }) })
        if (hooks.isWithin(point)) return ask(db)
        const key = `${point} ${name}`
        const asked = answers.get(key)
        if (!asked) throw new Unanswered(key, ask)
        return asked as Asked<typeof point>
      },
      tell: (point, read) =>
        void later.push(async () => {
          const payload = await read()
          if (payload) await hooks.ask(point, log, payload)
        }),
      async hide(db, point, payload) {
        if (hooks.isWithin(point)) return hooks.hide(point, log, payload, db)
        // Another request may have made the account since it was asked about.
        if ([...answers.keys()].some((key) => key.startsWith(`${point} `))) return
        const asked = { payload, answer: {} }
        throw new Unanswered(`${point} hidden`, () => hooks.hide(point, log, payload).then(() => asked))
      },
      hideTold: (point, read) => void later.push(() => read().then(() => hooks.waitAsLong(point))),
    }
    try {
      const ids = { newId: newId.fromStart(), newRowId: newRowId.fromStart() }
      const result = await hooks.runAsking(() => run({ ...deps, ...ids, questions } as unknown as Asking<Deps>))
      return { result, later }
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error
      answers.set(error.key, await error.ask())
    }
  }
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}

/**
 * Runs statements that issue tokens: in a transaction only where a hook may refuse these. `writesOnce`: by one
 * statement, which follows the question unless a function is asked.
 */
export function withHooksIn<Deps extends QuestionDeps & { db: Kysely<DB> }, Result>(
  deps: Deps,
  log: AuditLog,
  run: (asking: Asking<Deps>, trx: Transaction<DB> | undefined) => Promise<Result>,
  { writesOnce = false } = {},
): Promise<Result> {
  if (!deps.hooks.has('customize-access-token')) return run(deps as Asking<Deps>, undefined)
  if (writesOnce && !deps.hooks.isWithin('customize-access-token')) {
    return withHooks(deps, log, (asking) => run(asking, undefined))
  }
  return withHooks(deps, log, (asking) => deps.db.transaction().execute((trx) => run(asking, trx)))
}

/** Makes the same ids, in the same order, from each start. */
function repeatable(make: () => string) {
  const made: string[] = []
  return {
    fromStart: () => {
      let next = 0
      return () => {
        made[next] ??= make()
        return made[next++] as string
      }
    },
  }
}
