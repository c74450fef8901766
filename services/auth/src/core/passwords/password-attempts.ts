// Each failed attempt at a password doubles the wait before the next, from 1 s to 15 minutes, after a few that are free
// (AUTH_RATE_LIMIT_FAILED_SIGN_INS). An attempt during a wait is refused before its password is checked, so the refusal
// does not reveal whether it was right. SQL: password-attempts.store.ts.
import { createHash } from 'node:crypto'
import { createKeyedMutex } from '@services/common/concurrency/keyed-mutex'
import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import {
  countAttempt,
  counterExists,
  forgetCounters,
  keepKeys,
  refundAttempt,
  type Wait,
} from './password-attempts.store.ts'

/**
 * Failed attempts are counted twice. The counter of account and trusted client address stops one guesser and spares the
 * owner elsewhere. The counter of the account, with four times as many free attempts, stops guessers at many addresses.
 * It refuses nothing at an address that the account was signed in from recently. Without a trusted address there is
 * only the account's counter, with the smaller number of free attempts. A persistent guesser then keeps the owner
 * waiting, but mail links still work.
 */
export interface PasswordAttempt {
  /** Account as typed, known or not: counting by user would reveal which address and number belong together. */
  identifier: string
  /** Trusted client address. */
  address: string | undefined
  /** Replaces the address where none is trusted and the caller has a session; it never counts as the account's own. */
  session?: string
}

export type PasswordAttempts = ReturnType<typeof createPasswordAttempts>

/**
 * Wait after n failed attempts, of which f are free: none while n < f, then min(firstMs · 2^(n - f), longestMs) since
 * the last one. Counters expire after that: later than the longest wait ends, which expiry would cut short.
 */
const WAIT: Wait = { firstMs: 1_000, longestMs: 900_000, expireAfterMs: 3_600_000 }

const DAY_MS = 86_400_000
/** Time for which an address counts as the account's own after a sign-in. */
const KNOWN_FOR_MS = 30 * DAY_MS
/** Marks are prolonged once a day at most, so that most sign-ins write none. */
const KNOWN_AGAIN_AFTER_MS = DAY_MS
const ACCOUNT_ALONE_FACTOR = 4
/** Attempts at one account from one address that wait for each other in one process; no person makes more. */
const MAX_WAITING = 30

/**
 * Every attempt is counted as failed before its password is checked, and a right one deletes the counters. So parallel
 * attempts, in any number of replicas, get no more guesses than sequential ones. In each process attempts at one
 * account from one address run one at a time, so parallel right ones do not refuse each other. A flood from elsewhere
 * has mutexes of its own.
 */
export function createPasswordAttempts(
  { db, now }: { db: Kysely<DB>; now: () => Date },
  { freeAttempts }: { freeAttempts: number },
) {
  const mutex = createKeyedMutex({ maxWaiting: MAX_WAITING, refuse: () => mustWait(1000) })

  const mark = async (keys: string[]) => {
    if (keys.length === 0) return
    const until = now().getTime() + KNOWN_FOR_MS
    const unlessUntil = until - KNOWN_AGAIN_AFTER_MS
    await regardlessOfDeadline(() => keepKeys(db, keys, { until, unlessUntil })).catch(() => {})
  }

  /**
   * Runs a sign-in's attempt; undefined: wrong password. Throws over_request_rate_limit while it has to wait. After a
   * right password the sign-in may still be refused; call `markClientKnown` of the result, which never fails, on
   * success.
   */
  const runSignIn = (subject: PasswordAttempt, isRight: () => Promise<boolean>) => {
    const { guards, ...keys } = keysOf(subject)
    return mutex.run(keys.pair ?? keys.account, async () => {
      const at = now().getTime()
      const accountFree = keys.pair ? freeAttempts * ACCOUNT_ALONE_FACTOR : freeAttempts
      const { counted, before } = await countAttempt(db, { ...keys, accountFree, pairFree: freeAttempts, at, ...WAIT })
      // Regardless of the deadline: the next attempt would wait for one that was not made.
      const undo = () => regardlessOfDeadline(() => refundAttempt(db, counted, before, at + WAIT.expireAfterMs))
      if (counted.length < guards.length) {
        // A parallel attempt may have won the race for one counter: undo the other.
        await undo()
        throw mustWait(Math.max(...guards.map((key) => before.get(key)?.waitMs ?? 0)))
      }
      const right = await isRight().catch(async (error) => {
        // The password was not checked: neither right nor wrong.
        await undo().catch(() => {})
        throw error
      })
      if (!right) return undefined
      await regardlessOfDeadline(() => forgetCounters(db, { keys: guards }))
      // The first statement has read how long the marks last: most sign-ins need no other one.
      const isDue = (key: string) => (before.get(key)?.expire ?? 0) < at + KNOWN_FOR_MS - KNOWN_AGAIN_AFTER_MS
      return {
        /** An unproven identifier owns no messages: any stranger can register it. */
        markClientKnown: ({ isProven }: { isProven: boolean }) => mark(knownKeys(keys, isProven).filter(isDue)),
      }
    })
  }

  return {
    runSignIn,
    /** Runs an attempt of a caller with a session; a right one marks the client address as known at once. */
    async run(subject: PasswordAttempt, isRight: () => Promise<boolean>): Promise<boolean> {
      const right = await runSignIn(subject, isRight)
      await right?.markClientKnown({ isProven: false })
      return right !== undefined
    },
    /** Forgets the failed attempts at a password that was replaced. Never fails: counters expire by themselves. */
    async forget(subject: PasswordAttempt): Promise<void> {
      await regardlessOfDeadline(() => forgetCounters(db, { keys: keysOf(subject).guards })).catch(() => {})
    },
    /** Key of the trusted address if the account was signed in from it recently by a proven address or number. */
    async knownClient(subject: PasswordAttempt): Promise<string | undefined> {
      const { owner } = keysOf(subject)
      return owner !== null && (await counterExists(db, owner, now())) ? owner : undefined
    },
    /**
     * Lets the trusted address count as the account's own after a sign-in by link or code, which proves the identifier.
     */
    markClientKnown: (subject: PasswordAttempt): Promise<void> => mark(knownKeys(keysOf(subject), true)),
  }
}

/** Marks of a sign-in: its client address does not wait, and owns messages to the identifier if that is proven. */
const knownKeys = ({ known, owner }: Pick<ReturnType<typeof keysOf>, 'known' | 'owner'>, isProven: boolean): string[] =>
  [known, isProven ? owner : null].filter((key) => key !== null)

function mustWait(ms: number) {
  countLimitHit('password')
  return apiError('over_request_rate_limit', { retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)) })
}

/** Keys are hashes: accounts and addresses are personal data. `guards` are those that an attempt counts for. */
function keysOf({ identifier, address, session }: PasswordAttempt) {
  const hash = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('base64url')
  const caller = address ?? session
  const pairHash = caller === undefined ? null : hash(identifier, caller)
  const account = `password-account:${hash(identifier)}`
  const pair = pairHash && `password-pair:${pairHash}`
  return {
    account,
    pair,
    guards: pair ? [account, pair] : [account],
    known: address === undefined ? null : `password-known:${pairHash}`,
    owner: address === undefined ? null : `message-owner:${pairHash}`,
  }
}
