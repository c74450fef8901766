// Guessing at passwords costs time that grows with every miss. The one rule: a try that has to wait is refused before its
// password is looked at, right or wrong, or the delay would tell which it was. Counters: password-tries.store.ts.
import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { countLimitHit } from '../metrics.ts'
import { type Counter, countUp, countUpIfUnchanged, forgetCounters, readCounters } from './password-tries.store.ts'

/**
 * Misses are counted twice: for the account together with the client address a trusted proxy vouches for, and for the
 * account alone, where four times as many are free. The first stops one guesser without touching the account's owner, who
 * comes from elsewhere. The second stops guessers of many addresses; it does not hold for an address that this account was
 * signed in from lately, so that they cannot lock out its owner either. Without a trusted address only the account is
 * known, with the small number free; whoever keeps guessing then keeps the owner waiting, who has mail links left.
 */
export interface PasswordTry {
  /** What was typed as the account, known or not. */
  identifier: string
  /** The trusted client address. */
  address: string | undefined
}

export type PasswordTries = (subject: PasswordTry, isRight: () => Promise<boolean>) => Promise<boolean>

const HOUR_MS = 3_600_000
/** Misses are forgotten after this long without another; longer than the longest wait, or that would end them. */
const FORGET_AFTER_MS = HOUR_MS
const LONGEST_WAIT_MS = 900_000
/** How long an address counts as the account's own after a sign-in. */
const KNOWN_FOR_MS = 30 * 24 * HOUR_MS
/** Prolonged once a day at most, so that an ordinary sign-in writes nothing here. */
const KNOWN_AGAIN_AFTER_MS = 24 * HOUR_MS
const ACCOUNT_ALONE_FACTOR = 4
/** Tries at one account that wait for each other in one process; more at once is no person. */
const MAX_IN_LINE = 30

/**
 * Runs a try at a password; resolves to whether it was right, throws over_request_rate_limit while it has to wait. Tries at
 * one account run one after the other in each process, and once misses cost time, the right to try is taken in the
 * database first: of any number at once, in any number of replicas, one gets it. In line are tries of one address, so that a
 * flood from elsewhere keeps nobody out.
 */
export function createPasswordTries(
  { db, now }: { db: Kysely<DB>; now: () => Date },
  { freeMisses }: { freeMisses: number },
): PasswordTries {
  const inLine = createLine(MAX_IN_LINE)

  return (subject, isRight) => {
    const keys = keysOf(subject)
    return inLine(keys.pair ?? keys.account, async () => {
      const started = now()
      const counters = await readCounters(db, Object.values(keys), started)
      const isKnown = keys.known !== undefined && counters.has(keys.known)
      const free = keys.pair ? freeMisses * ACCOUNT_ALONE_FACTOR : freeMisses
      const guards = [
        ...(keys.pair ? [{ key: keys.pair, free: freeMisses }] : []),
        ...(isKnown ? [] : [{ key: keys.account, free }]),
      ].map((guard) => ({ ...guard, counter: counters.get(guard.key) }))

      const waitMs = Math.max(...guards.map(({ counter, free }) => waitLeftMs(counter, free, started)))
      if (waitMs > 0) throw mustWait(waitMs)
      const taken = await takeTurns(db, guards, started)
      const right = await isRight()
      if (right) await remember(db, keys, counters, started)
      else {
        for (const key of [keys.pair, keys.account]) {
          if (key && !taken.has(key)) await countUp(db, key, started, FORGET_AFTER_MS)
        }
      }
      return right
    })
  }
}

interface Guard {
  key: string
  free: number
  counter: Counter | undefined
}

/** Counts the try before it is made wherever the free ones are used up; whoever was overtaken waits like after a miss. */
async function takeTurns(db: Kysely<DB>, guards: Guard[], now: Date): Promise<Set<string>> {
  const taken = new Set<string>()
  for (const { key, free, counter } of guards) {
    if (!counter || counter.points < free) continue
    if (!(await countUpIfUnchanged(db, key, counter, now, FORGET_AFTER_MS))) {
      throw mustWait(waitMs(counter.points + 1, free))
    }
    taken.add(key)
  }
  return taken
}

async function remember(
  db: Kysely<DB>,
  keys: ReturnType<typeof keysOf>,
  counters: Map<string, Counter>,
  now: Date,
): Promise<void> {
  const misses = [keys.pair, keys.account].filter((key) => key !== undefined && counters.has(key)) as string[]
  if (misses.length > 0) await forgetCounters(db, misses)
  if (!keys.known) return
  const knownUntil = counters.get(keys.known)?.expire ?? 0
  if (knownUntil < now.getTime() + KNOWN_FOR_MS - KNOWN_AGAIN_AFTER_MS) await countUp(db, keys.known, now, KNOWN_FOR_MS)
}

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
function keysOf({ identifier, address }: PasswordTry) {
  const hash = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('base64url')
  const pair = address === undefined ? undefined : hash(identifier, address)
  return {
    account: `password-account:${hash(identifier)}`,
    ...(pair ? { pair: `password-pair:${pair}`, known: `password-known:${pair}` } : {}),
  }
}

/** Runs work one after the other per key; refuses when `max` wait already. */
function createLine(max: number) {
  const lines = new Map<string, { last: Promise<unknown>; length: number }>()
  return async <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const line = lines.get(key) ?? { last: Promise.resolve(), length: 0 }
    if (line.length > max) throw mustWait(1000)
    lines.set(key, line)
    line.length++
    const turn = line.last.then(work)
    line.last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      if (--line.length === 0) lines.delete(key)
    }
  }
}
