// Guessing at passwords costs time that grows with every miss. The one rule: a try that has to wait is refused before its
// password is looked at, right or wrong, or the delay would tell which it was. Counters: password-tries.store.ts.
import { createHash } from 'node:crypto'
import { regardlessOfDeadline } from '@services/common/deadline'
import { createKeyedMutex } from '@services/common/keyed-mutex'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import {
  type Counter,
  forgetCounters,
  type Guard,
  giveBack,
  isCounted,
  keepKeys,
  takeTry,
} from './password-tries.store.ts'

/**
 * Misses are counted twice: for the account together with the client address a trusted proxy vouches for, and for the
 * account alone, where four times as many are free. The first stops one guesser without touching the account's owner, who
 * comes from elsewhere. The second stops guessers of many addresses; it does not hold for an address that this account was
 * signed in from lately, so that they cannot lock out its owner either. Without a trusted address only the account is
 * known, with the small number free; whoever keeps guessing then keeps the owner waiting, who has mail links left.
 */
export interface PasswordTry {
  /**
   * What was typed as the account, known or not: counted by the account, a wait would tell which two addresses are of one.
   */
  identifier: string
  /** The trusted client address. */
  address: string | undefined
  /** Stands in for the address where none is trusted and the caller has a session; it never counts as the account's own. */
  session?: string
}

/** A right password. The sign-in may still be refused, so the client address is noted when it has succeeded. */
export interface RightPassword {
  /**
   * Lets the trusted address count as the account's own. Messages to an address that nobody has proven have no owner: anybody
   * registers one. Never fails.
   */
  noteSignIn(typed: { isProven: boolean }): Promise<void>
}

export interface PasswordTries {
  /**
   * Runs an attempt to sign in. Resolves to undefined for a wrong password; throws over_request_rate_limit while it has to wait.
   */
  runSignIn(subject: PasswordTry, isRight: () => Promise<boolean>): Promise<RightPassword | undefined>
  /** Runs an attempt of a caller with a session; a right one notes the client address at once. */
  run(subject: PasswordTry, isRight: () => Promise<boolean>): Promise<boolean>
  /** Forgets the misses of a password that is none any more. Never fails: counters expire by themselves. */
  forget(subject: PasswordTry): Promise<void>
  /** Key of the trusted address where the account was signed in from it lately, by what was typed and proven. */
  knownClient(subject: PasswordTry): Promise<string | undefined>
  /** Lets the trusted address count as the account's own after a sign-in by a link or code, which proves what was typed. */
  noteSignIn(subject: PasswordTry): Promise<void>
}

const HOUR_MS = 3_600_000
/** Misses are forgotten after this long without another; longer than the longest wait, or that would end them. */
const FORGET_AFTER_MS = HOUR_MS
const LONGEST_WAIT_MS = 900_000
/** How long an address counts as the account's own after a sign-in: by a password, or by a link or code to what was typed. */
const KNOWN_FOR_MS = 30 * 24 * HOUR_MS
/** Notes are prolonged once a day at most, so that an ordinary sign-in changes none. */
const KNOWN_AGAIN_AFTER_MS = 24 * HOUR_MS
const ACCOUNT_ALONE_FACTOR = 4
/** Tries at one account that wait for each other in one process; more at once is no person. */
const MAX_IN_LINE = 30

/**
 * Every try is counted as a miss before the password is looked at, and a right one makes the misses be forgotten: of any number at
 * once, from any number of addresses and in any number of replicas, no more are made than one after the other. In each process
 * tries at one account from one address wait for each other, so that right ones at once do not count against each other;
 * those from elsewhere have lines of their own, and a flood keeps nobody out.
 */
export function createPasswordTries(
  { db, now }: { db: Kysely<DB>; now: () => Date },
  { freeMisses }: { freeMisses: number },
): PasswordTries {
  const oneAtATime = createKeyedMutex({ mostWaiting: MAX_IN_LINE, refuse: () => mustWait(1000) })

  const note = async (keys: string[]) => {
    if (keys.length === 0) return
    const until = now().getTime() + KNOWN_FOR_MS
    const unlessUntil = until - KNOWN_AGAIN_AFTER_MS
    await regardlessOfDeadline(() => keepKeys(db, keys, { until, unlessUntil })).catch(() => {})
  }

  const runSignIn: PasswordTries['runSignIn'] = (subject, isRight) => {
    const keys = keysOf(subject)
    const account = { key: keys.account, free: keys.pair ? freeMisses * ACCOUNT_ALONE_FACTOR : freeMisses }
    const pair = keys.pair ? { key: keys.pair, free: freeMisses } : undefined
    const guards: Guard[] = pair ? [account, pair] : [account]
    return oneAtATime.run(keys.pair ?? keys.account, async () => {
      const started = now()
      const { taken, before } = await takeTry(db, {
        account,
        pair,
        known: keys.known,
        owner: keys.owner,
        now: started,
        keepMs: FORGET_AFTER_MS,
        longestWaitMs: LONGEST_WAIT_MS,
      })
      const counted = guards.map(({ key }) => key).filter((key) => taken.has(key))
      // Also of a request that has run out of time: the next one would wait for it.
      const notMade = () =>
        regardlessOfDeadline(() => giveBack(db, counted, before, started.getTime() + FORGET_AFTER_MS))
      if (counted.length < guards.length) {
        // Overtaken at the second counter: the try is not made, so the first has not seen one.
        await notMade()
        throw mustWait(waitAfter(guards, before, started, keys.known))
      }
      const right = await isRight().catch(async (error) => {
        // Not looked at: neither right nor a miss.
        await notMade().catch(() => {})
        throw error
      })
      if (!right) return undefined
      await regardlessOfDeadline(() => forgetCounters(db, { keys: counted }))
      // The statement above has read how long they are noted: most sign-ins need no other one.
      const isDue = (key: string) =>
        (before.get(key)?.expire ?? 0) < started.getTime() + KNOWN_FOR_MS - KNOWN_AGAIN_AFTER_MS
      return { noteSignIn: ({ isProven }) => note(notedKeys(keys, isProven).filter(isDue)) }
    })
  }

  return {
    runSignIn,
    async run(subject, isRight) {
      const right = await runSignIn(subject, isRight)
      await right?.noteSignIn({ isProven: false })
      return right !== undefined
    },
    async forget(subject) {
      const { account, pair } = keysOf(subject)
      await regardlessOfDeadline(() => forgetCounters(db, { keys: pair ? [account, pair] : [account] })).catch(() => {})
    },
    async knownClient(subject) {
      const { owner } = keysOf(subject)
      return owner !== undefined && (await isCounted(db, owner, now())) ? owner : undefined
    },
    async noteSignIn(subject) {
      await note(notedKeys(keysOf(subject), true))
    },
  }
}

/** What is left to wait; for a try that was overtaken, about as long as whoever overtook it makes it wait. */
function waitAfter(guards: Guard[], before: Map<string, Counter>, now: Date, known: string | undefined): number {
  const isKnown = known !== undefined && before.has(known)
  const binding = guards.filter((_, index) => index > 0 || !isKnown)
  return Math.max(...binding.map(({ key, free }) => waitLeftMs(before.get(key), free, now)))
}

/** What is noted of a sign-in: that its client address does not wait, and that it owns messages to what was typed. */
const notedKeys = ({ known, owner }: ReturnType<typeof keysOf>, isProven: boolean): string[] =>
  [known, isProven ? owner : undefined].filter((key) => key !== undefined)

/** 1 s after the last free miss, doubled by each further one. */
const waitMs = (misses: number, free: number) =>
  misses < free ? 0 : Math.min(1000 * 2 ** Math.min(misses - free, 20), LONGEST_WAIT_MS)

function waitLeftMs(counter: Counter | undefined, free: number, now: Date): number {
  if (!counter) return 0
  const missedAt = counter.expire - FORGET_AFTER_MS
  return Math.max(0, missedAt + waitMs(counter.points, free) - now.getTime())
}

function mustWait(ms: number) {
  countLimitHit('password')
  return apiError('over_request_rate_limit', { retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)) })
}

/** Accounts and addresses of people are not stored: keys are hashes. */
function keysOf({ identifier, address, session }: PasswordTry) {
  const hash = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('base64url')
  const caller = address ?? session
  const pair = caller === undefined ? undefined : hash(identifier, caller)
  return {
    account: `password-account:${hash(identifier)}`,
    pair: pair && `password-pair:${pair}`,
    known: address === undefined ? undefined : `password-known:${pair}`,
    owner: address === undefined ? undefined : `message-owner:${pair}`,
  }
}
