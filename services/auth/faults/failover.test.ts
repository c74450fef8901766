// Behavior of auth when its database fails without closing connections: silence, a primary that becomes read-only, a
// failover that loses the last commits. Two real nodes, and one address that leads to either.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type PostgresPair, startPostgresPair } from '@services/common/testing/database/postgres-pair'
import { type Mailbox, startMailbox } from '@services/common/testing/mailbox'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bearer, migrateDatabase } from '../test/service.ts'
import { openProcesses } from '../test/service-process.ts'
import { ALLOWED, createPerson, type Load, post, signIn, startLoad } from './load.ts'

const TEST_WITHIN_MS = 180_000

/** Longest recovery from silence. */
const BACK_WITHIN_MS = 25_000
/** Longest recovery once a server accepts writes. */
const WRITABLE_WITHIN_MS = 3_000
/** Longest delay until readiness is correct. */
const KNOWN_WITHIN_MS = 2_000
/** Longest delay of a mail that was notified; without the notification it waits 5 s to 7.5 s for a poll. */
const HEARD_WITHIN_MS = 3_000
/** Longer than two polls, so that a worker without LISTEN is late for some mail. */
const LISTENED_FOR_MS = 15_000
/** Mails a worker sends at once: each may be sent again when its completion is lost. */
const MAILS_AT_ONCE = 4

const report = openFaultReport()
let pair: PostgresPair
let mailbox: Mailbox
let processes: ReturnType<typeof openProcesses>
/** Recipients of all mails: the mailbox itself keeps the newest 500. */
let mailed: Map<number, string>
/** Arrival of the first mail of each address (`performance.now`), within a quarter of a second. */
let arrivals: Map<string, number>
let collecting: NodeJS.Timeout

beforeEach(async () => {
  ;[pair, mailbox] = await Promise.all([startPostgresPair('auth', migrateDatabase), startMailbox()])
  mailed = new Map()
  arrivals = new Map()
  collecting = setInterval(() => {
    for (const { id, to } of mailbox.messages()) {
      mailed.set(id, to.join())
      if (!arrivals.has(to.join())) arrivals.set(to.join(), performance.now())
    }
  }, 250)
  processes = openProcesses({
    AUTH_DATABASE_URL: pair.url,
    AUTH_MIGRATE_ON_START: 'false',
    AUTH_SMTP_PORT: String(mailbox.port),
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000000',
    AUTH_PASSWORD_HASH_MEMORY_KIB: '1024',
  })
}, 120_000)
afterEach(async () => {
  clearInterval(collecting)
  await processes.end()
  await mailbox.close()
  await pair.end()
}, 60_000)

async function loadOn(base: string): Promise<Load> {
  const admin = await bearer({ role: 'service_role' })
  const tokens: string[] = []
  for (let number = 0; number < 4; number++) {
    const { body } = await signIn(base, await createPerson(base, admin))
    tokens.push((body as { refresh_token: string }).refresh_token)
  }
  return startLoad([base], tokens)
}

const isReady = async (base: string) => (await fetch(`${base}/health/ready`)).status === 200

/** Measures the time in ms until this holds. The caller compares it with the bound. */
async function measure(holds: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now()
  await expect.poll(holds, { timeout: 60_000, interval: 50 }).toBe(true)
  return Math.round(performance.now() - startedAt)
}

/** Checks readiness four times a second. */
function watchReadiness(base: string) {
  const seen = { lastUnreadyAt: 0, longest: 0 }
  const timer = setInterval(async () => {
    const startedAt = performance.now()
    const ready = await isReady(base)
    const now = performance.now()
    seen.longest = Math.max(seen.longest, Math.round(now - startedAt))
    if (!ready) seen.lastUnreadyAt = now
  }, 250)
  return { seen, stop: () => clearInterval(timer) }
}

/**
 * Signs up twice a second, without other load. Returns the time in ms from `since` to the sign-up after which every
 * mail is sent sooner than a poll would find it. Infinity if there is none.
 */
async function measureListening(base: string, since: number, forMs: number): Promise<number> {
  const signUps: Promise<{ at: number; email: string; answeredAt?: number }>[] = []
  const signUpOnce = async () => {
    const at = performance.now()
    const email = `${randomUUID()}@example.com`
    const { status } = await post(`${base}/signup`, { email, password: 'correct horse' })
    return { at, email, ...(status === 200 && { answeredAt: performance.now() }) }
  }
  while (performance.now() < since + forMs) {
    signUps.push(signUpOnce())
    await sleep(500)
  }
  const done = await Promise.all(signUps)
  const arrivedAt = (email: string) => arrivals.get(email) ?? Number.POSITIVE_INFINITY
  const isMissing = () => done.some(({ email, answeredAt }) => answeredAt && !arrivals.has(email))
  await expect.poll(isMissing).toBe(false)
  const isHeard = ({ email, answeredAt = 0 }: (typeof done)[number]) => arrivedAt(email) - answeredAt < HEARD_WITHIN_MS
  const first = done[done.findLastIndex((signUp) => !isHeard(signUp)) + 1]
  return first ? Math.round(first.at - since) : Number.POSITIVE_INFINITY
}

/** Repeats a sign-up until it is answered 200 and the mail arrives. */
async function mailGoesOn(base: string): Promise<boolean> {
  const email = `${randomUUID()}@example.com`
  if ((await post(`${base}/signup`, { email, password: 'correct horse' }, 2_000)).status !== 200) return false
  await mailbox.waitFor(email)
  return true
}

/** Waits for the mails of all acknowledged sign-ups whose account exists; returns how many got two. */
async function countTwice(load: Load, query: PostgresPair['onPrimary']): Promise<number> {
  const accounts = await emailsOf(query)
  const acknowledged = load.acknowledged.filter((email) => accounts.has(email))
  const countByAddress = () => {
    const counts = new Map<string, number>()
    for (const address of mailed.values()) counts.set(address, (counts.get(address) ?? 0) + 1)
    return counts
  }
  const withoutMail = () => acknowledged.filter((email) => !countByAddress().has(email)).length
  await expect.poll(withoutMail, { timeout: 60_000, interval: 500 }).toBe(0)
  const counts = countByAddress()
  return acknowledged.filter((email) => (counts.get(email) ?? 0) > 1).length
}

async function countEnded(base: string, { refreshTokens }: Load): Promise<number> {
  const answers = await Promise.all(
    refreshTokens.map((refresh_token) => post(`${base}/token?grant_type=refresh_token`, { refresh_token })),
  )
  return answers.filter(({ status }) => status !== 200).length
}

const emailsOf = async (query: PostgresPair['onPrimary']) =>
  new Set<string>((await query('select email from users')).map(({ email }) => email))

const countLost = async ({ acknowledged }: Load, query: PostgresPair['onPrimary']) => {
  const accounts = await emailsOf(query)
  return acknowledged.filter((email) => !accounts.has(email)).length
}

const answersOf = ({ statuses, longest }: Load) => ({
  'answered 200': statuses[200] ?? 0,
  '503': statuses[503] ?? 0,
  '504': statuses[504] ?? 0,
  'broken or given up': statuses[0] ?? 0,
  'longest answer, ms': Math.round(longest),
})

const unexpected = ({ statuses }: Load) => Object.keys(statuses).filter((status) => !ALLOWED.includes(Number(status)))

test(
  'requests and mails recover within 25 s from silence on open connections, without a restart or a loss',
  async () => {
    const { base, child } = await processes.serve()
    const load = await loadOn(base)
    await sleep(2_000)
    const silentAt = performance.now()
    const readiness = watchReadiness(base)
    pair.silenceOpen()
    const mailBackAfter = await measure(() => mailGoesOn(base))
    await sleep(Math.max(0, silentAt + BACK_WITHIN_MS + 5_000 - performance.now()))
    await load.stop()
    readiness.stop()
    const requestsBackAfter = Math.max(0, Math.round(load.lastFailureAt - silentAt))
    const readyAfter = Math.max(0, Math.round(readiness.seen.lastUnreadyAt - silentAt))
    const [lost, ended, twice] = [
      await countLost(load, pair.onPrimary),
      await countEnded(base, load),
      await countTwice(load, pair.onPrimary),
    ]
    report('silence on open connections', {
      ...answersOf(load),
      'last error after, ms': requestsBackAfter,
      'mails back after, ms': mailBackAfter,
      'last unready after, ms': readyAfter,
      'longest answer of readiness, ms': readiness.seen.longest,
      'accounts lost': lost,
      'sessions ended': ended,
      'mails twice': twice,
    })
    for (const after of [requestsBackAfter, mailBackAfter, readyAfter]) expect(after).toBeLessThan(BACK_WITHIN_MS)
    expect({ unexpected: unexpected(load), lost, ended }).toEqual({ unexpected: [], lost: 0, ended: 0 })
    expect(twice).toBeLessThanOrEqual(MAILS_AT_ONCE)
    expect(await isReady(base)).toBe(true)
    expect(child.exitCode).toBeNull()
  },
  TEST_WITHIN_MS,
)

/** Settings of the database: a proxy that follows the primary, or both servers. */
const ADDRESSES: readonly (readonly [string, () => Record<string, string>])[] = [
  ['one address', () => ({})],
  ['two addresses', () => ({ AUTH_DATABASE_URL: pair.primary.url, AUTH_DATABASE_FALLBACK_URLS: pair.standby.url })],
]

test.for(ADDRESSES)(
  'with %s the service leaves a primary that stays read-only within 3 s of a writable server, and readiness reports it within 2 s',
  { timeout: TEST_WITHIN_MS },
  async ([addresses, settings]) => {
    const { base } = await processes.serve(settings())
    const load = await loadOn(base)
    await sleep(2_000)
    await pair.makeReadOnly()
    const unreadyAfter = await measure(async () => !(await isReady(base)))
    await sleep(4_000)
    await expect.poll(pair.isCaughtUp).toBe(true)
    await pair.promote()
    pair.leadTo(pair.standby)
    const writableAt = performance.now()
    const [mailBackAfter, readyAfter] = await Promise.all([
      measure(() => mailGoesOn(base)),
      measure(() => isReady(base)),
    ])
    await sleep(5_000)
    await load.stop()
    const requestsBackAfter = Math.max(0, Math.round(load.lastFailureAt - writableAt))
    const [lost, ended, twice] = [
      await countLost(load, pair.onStandby),
      await countEnded(base, load),
      await countTwice(load, pair.onStandby),
    ]
    report(`primary read-only for good, ${addresses}`, {
      ...answersOf(load),
      'unready after, ms': unreadyAfter,
      'ready again after promotion, ms': readyAfter,
      'last error after promotion, ms': requestsBackAfter,
      'mails back after promotion, ms': mailBackAfter,
      'accounts lost': lost,
      'sessions ended': ended,
      'mails twice': twice,
    })
    expect(load.statuses[503]).toBeGreaterThan(0)
    expect(unreadyAfter).toBeLessThan(KNOWN_WITHIN_MS)
    expect(readyAfter).toBeLessThan(KNOWN_WITHIN_MS)
    for (const after of [requestsBackAfter, mailBackAfter]) expect(after).toBeLessThan(WRITABLE_WITHIN_MS)
    expect({ unexpected: unexpected(load), lost, ended }).toEqual({ unexpected: [], lost: 0, ended: 0 })
    expect(twice).toBeLessThanOrEqual(MAILS_AT_ONCE)
  },
)

test.for(ADDRESSES)(
  'with %s a failover that lost two seconds ends no session, and requests recover within 3 s of a writable server',
  { timeout: TEST_WITHIN_MS },
  async ([addresses, settings]) => {
    const { base } = await processes.serve(settings())
    const load = await loadOn(base)
    await sleep(2_000)
    await pair.stopReplication()
    await sleep(2_000)
    pair.killPrimary()
    const unreadyAfter = await measure(async () => !(await isReady(base)))
    await sleep(2_000)
    await pair.promote()
    pair.leadTo(pair.standby)
    const writableAt = performance.now()
    const [mailBackAfter, readyAfter] = await Promise.all([
      measure(() => mailGoesOn(base)),
      measure(() => isReady(base)),
    ])
    await sleep(5_000)
    await load.stop()
    const requestsBackAfter = Math.max(0, Math.round(load.lastFailureAt - writableAt))
    const [lost, ended, twice] = [
      await countLost(load, pair.onStandby),
      await countEnded(base, load),
      await countTwice(load, pair.onStandby),
    ]
    report(`failover that lost two seconds, ${addresses}`, {
      ...answersOf(load),
      'unready after, ms': unreadyAfter,
      'ready again after promotion, ms': readyAfter,
      'last error after promotion, ms': requestsBackAfter,
      'mails back after promotion, ms': mailBackAfter,
      // Committed to a primary that did not replicate them: these are lost for good.
      'accounts lost': lost,
      'sessions ended': ended,
      // Sent in the lost seconds to earlier accounts: the record of it is lost.
      'mails twice': twice,
    })
    expect(unreadyAfter).toBeLessThan(KNOWN_WITHIN_MS)
    expect(readyAfter).toBeLessThan(KNOWN_WITHIN_MS)
    for (const after of [requestsBackAfter, mailBackAfter]) expect(after).toBeLessThan(WRITABLE_WITHIN_MS)
    expect({ unexpected: unexpected(load), ended }).toEqual({ unexpected: [], ended: 0 })
    const recovered = await pair.onStandby(
      `select from audit_log_entries where payload ->> 'action' = 'token_recovered'`,
    )
    expect(recovered.length).toBeGreaterThan(0)
  },
)

test(
  'LISTEN recovers within 25 s of silence and within 3 s of a writable server: mails leave sooner than by polling',
  async () => {
    const { base } = await processes.serve()
    const silentAt = performance.now()
    pair.silenceOpen()
    const afterSilence = await measureListening(base, silentAt, BACK_WITHIN_MS + LISTENED_FOR_MS)
    report('LISTEN, silence on open connections', { 'heard again after, ms': afterSilence })
    await pair.makeReadOnly()
    await sleep(4_000)
    await expect.poll(pair.isCaughtUp).toBe(true)
    await pair.promote()
    pair.leadTo(pair.standby)
    const writableAt = performance.now()
    const afterPromotion = await measureListening(base, writableAt, WRITABLE_WITHIN_MS + LISTENED_FOR_MS)
    report('LISTEN, primary read-only for good', { 'heard again after, ms': afterPromotion })
    expect(afterSilence).toBeLessThan(BACK_WITHIN_MS)
    expect(afterPromotion).toBeLessThan(WRITABLE_WITHIN_MS)
  },
  TEST_WITHIN_MS,
)
