import { isDatabaseUnavailable, sqlStateOf } from '@services/common/database/errors'
import type { Kysely } from 'kysely'
import { apiError } from '../../errors.ts'
import { callFunction } from './call-function.store.ts'
import { type HookAnswer, readHookAnswer, refusal, timedOut } from './hook-answer.ts'
import type { FunctionTarget } from './hook-uri.ts'
import type { Question } from './points.ts'

export interface FunctionHookSettings {
  target: FunctionTarget
  timeoutSeconds: number
  /** The question holds codes, which an error may quote: the log has only its SQLSTATE. */
  isSecret?: boolean
  /** Whether a transaction continues after a failure. */
  hasSavepoint?: boolean
  /** Nothing that the function writes stays. */
  isUndone?: boolean
}

/** Error of a function without its detail, which quotes rows. The message may quote the question: for the log alone. */
export class FunctionError extends Error {
  readonly sqlState: string
  constructor(sqlState: string, message?: string) {
    super(message === undefined ? sqlState : `${sqlState}: ${message}`)
    this.sqlState = sqlState
  }
}

/** SQLSTATE of a statement that reached its time limit. */
const QUERY_CANCELED = '57014'

/**
 * Asks a function of PostgreSQL (contract/auth-hooks.md 6). NULL is an empty answer. `raise … using errcode = 'PT403'`
 * refuses like an `error` with that status.
 */
export async function askFunction(
  // biome-ignore lint/suspicious/noExplicitAny: the function may be in any database
  db: Kysely<any>,
  { target, timeoutSeconds, isSecret = false, hasSavepoint, isUndone }: FunctionHookSettings,
  { body }: Question,
): Promise<HookAnswer> {
  const call = { target, argument: body, withinMs: timeoutSeconds * 1000, hasSavepoint, isUndone }
  const answer = await callFunction(db, call).catch((error) => {
    throw failureOf(error, timeoutSeconds, isSecret)
  })
  return answer === null ? {} : readHookAnswer(answer)
}

function failureOf(error: unknown, timeoutSeconds: number, isSecret: boolean) {
  const state = sqlStateOf(error)
  const isAway = state !== QUERY_CANCELED && isDatabaseUnavailable(error)
  if (state === undefined || isAway) return error
  const [, status] = /^PT(\d{3})$/.exec(state) ?? []
  const { message } = error as Error
  if (status !== undefined && message) return refusal(message, Number(status))
  const cause = new FunctionError(state, isSecret ? undefined : message)
  return state === QUERY_CANCELED
    ? timedOut(timeoutSeconds, cause)
    : apiError('unexpected_failure', { message: FAILED, cause })
}

const FAILED = 'Error running hook'
