// Processes killed while events are on their way to a receiver that fails, or while hooks hang. Each committed change
// has its event, in the order of its user; no user and no mail is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import pg from 'pg'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { bearer } from '../test/service.ts'
import { openStage } from '../test/service-process.ts'
import {
  answers,
  type HookReceiver,
  type Respond,
  startReceiver as startHookReceiver,
} from '../test/upstreams/hook-receiver.ts'

const TEST_WITHIN_MS = 600_000
const password = 'correct horse'
const report = openFaultReport()

type Stage = Awaited<ReturnType<typeof openStage>>
type Process = Awaited<ReturnType<Stage['serve']>>

let stage: Stage
let database: pg.Pool
let admin: { authorization: string }
beforeEach(async () => {
  stage = await openStage()
  database = new pg.Pool({ connectionString: stage.database.url })
  admin = await bearer({ role: 'service_role' })
})
afterEach(async () => {
  await database.end()
  await stage.end()
})

/** Status and body; 0 for a connection that broke. */
async function call(base: string, method: string, path: string, body: object) {
  try {
    const answer = await fetch(base + path, { method, headers: admin, body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as Record<string, string> }
  } catch {
    return { status: 0, body: {} }
  }
}

const kill = async ({ child, exit }: Process) => {
  child.kill('SIGKILL')
  await exit
}

const USERS = 12
/** Change of a user that is refused in its transaction. */
const REFUSED = 'r'.repeat(20_000)

interface Changed {
  id: string
  /** Changes that were answered 200, by number. */
  acknowledged: number[]
}

/** Changes each user again and again, each change at another process, until the returned function is called. */
function changeAll(users: Changed[], baseOf: (n: number) => string): () => Promise<number> {
  let isOver = false
  let broken = 0
  const loops = users.map(async ({ id, acknowledged }) => {
    for (let n = 1; !isOver; n++) {
      const metadata = n % 5 === 0 ? { n, refused: REFUSED } : { n }
      const { status } = await call(baseOf(n), 'PUT', `/admin/users/${id}`, { user_metadata: metadata })
      const answered = n % 5 === 0 ? 422 : 200
      expect([0, 503, 504, answered]).toContain(status)
      if (status === 200) acknowledged.push(n)
      if (status !== answered) broken++
      await sleep(20)
    }
  })
  return async () => {
    isOver = true
    await Promise.all(loops)
    return broken
  }
}

/** Lets the pauses of the receiver and the waits of its events end. Leases of killed attempts end by themselves. */
async function endWaits() {
  await database.query('update webhooks set paused_until = null')
  await database.query(`update webhook_deliveries set next_at = now() where state = 'waiting' and not is_running`)
}

const FAILURES: Record<string, Receiver['answer']> = {
  'answers 500': (response) => response.writeHead(500).end(),
  hangs: () => {},
  'hangs up': (response) => response.destroy(),
  'answers, and is not heard': (response) => void sleep(50).then(() => response.destroy()),
}

test(
  'each committed change has its event at least once, in order, however receivers fail and processes die',
  async () => {
    const receiver = await startReceiver()
    onTestFinished(() => receiver.close())
    const settings = { AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' }
    const replicas = [await stage.serve(settings), await stage.serve(settings)]
    const baseOf = (n: number) => replicas[n % replicas.length]?.base as string
    const heard = new Map<string, { n: number; eventId: string }[]>()
    const delivered = new Set<string>()
    const accept: Receiver['answer'] = (response, { headers }) => {
      delivered.add(String(headers['webhook-id']))
      response.writeHead(204).end()
    }
    receiver.answer = accept
    const input = { url: `${receiver.url}/events`, events: ['user.*'] }
    expect((await call(baseOf(0), 'POST', '/admin/webhooks', input)).status).toBe(201)
    // Every process has looked for receivers since.
    await sleep(6_000)
    const users: Changed[] = []
    for (let n = 0; n < USERS; n++) {
      const { body } = await call(baseOf(n), 'POST', '/admin/users', { email: `u${n}@example.com` })
      users.push({ id: body.id as string, acknowledged: [] })
    }
    const stop = changeAll(users, baseOf)
    let kills = 0
    for (const fail of Object.values(FAILURES)) {
      receiver.answer = accept
      await endWaits()
      await sleep(1_500)
      // One process is killed between successes, and another between failures.
      const first = kills++ % replicas.length
      await kill(replicas[first] as Process)
      replicas[first] = await stage.serve(settings)
      receiver.answer = fail
      await sleep(1_500)
      const second = kills++ % replicas.length
      await kill(replicas[second] as Process)
      replicas[second] = await stage.serve(settings)
    }
    const broken = await stop()
    receiver.answer = accept
    const waiting = async () => {
      await endWaits()
      const { rowCount } = await database.query(`select from webhook_deliveries where state <> 'delivered'`)
      return rowCount
    }
    await expect.poll(waiting, { timeout: 120_000, interval: 500 }).toBe(0)

    for (const { body, headers } of receiver.received) {
      const { id: userId, user_metadata: metadata } = JSON.parse(body).data.user
      expect(metadata).not.toHaveProperty('refused')
      const events = heard.get(userId) ?? []
      events.push({ n: metadata.n ?? 0, eventId: String(headers['webhook-id']) })
      heard.set(userId, events)
    }
    let [events, repeated, lost, disordered] = [0, 0, 0, 0]
    for (const { id, acknowledged } of users) {
      const own = heard.get(id) ?? []
      const numbers = own.map(({ n }) => n)
      disordered += numbers.filter((n, index) => index > 0 && n < (numbers[index - 1] as number)).length
      const known = new Set(own.filter(({ eventId }) => delivered.has(eventId)).map(({ n }) => n))
      lost += acknowledged.filter((n) => !known.has(n)).length
      const ids = new Set(own.map(({ eventId }) => eventId))
      events += ids.size
      repeated += own.length - ids.size
      // The audit log is written in the same transaction, by other code.
      const { rows } = await database.query(
        `select count(*)::int as count from audit_log_entries
          where payload ->> 'action' = 'user_modified' and payload -> 'traits' ->> 'user_id' = $1`,
        [id],
      )
      expect(ids.size).toBe(rows[0].count + 1)
      const { rows: stored } = await database.query('select user_metadata from users where id = $1', [id])
      expect(stored[0].user_metadata.n).toBe(numbers.at(-1))
    }
    const changes = users.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)
    report('receiver fails, processes killed', {
      ...{ kills, 'changes acknowledged': changes, 'changes unanswered': broken },
      ...{ events, 'repeated requests': repeated, 'events lost': lost, 'out of order': disordered },
    })
    expect(changes).toBeGreaterThan(100)
    expect({ lost, disordered }).toEqual({ lost: 0, disordered: 0 })
  },
  TEST_WITHIN_MS,
)

const POINTS = ['BEFORE_USER_CREATED', 'AFTER_USER_CREATED', 'SEND_EMAIL']
const NAMES = ['before-user-created', 'after-user-created', 'send-email']
const SIGN_UPS = 10

const settingsOf = (receiver: HookReceiver) => ({
  ...{ AUTH_SMTP_HOST: '', AUTH_SMTP_PORT: '', AUTH_SMTP_ADMIN_EMAIL: '', AUTH_RATE_LIMIT_OTP: '1000' },
  AUTH_SMTP_MAX_FREQUENCY: '2s',
  ...Object.fromEntries(
    Object.entries(receiver.settings('EMAIL')).flatMap(([name, value]) =>
      POINTS.map((point) => [name.replace('SEND_EMAIL', point), value]),
    ),
  ),
})

test.each(NAMES)(
  'a process killed while %s hangs loses no user and no mail',
  async (hanging) => {
    const receiver = await startHookReceiver()
    onTestFinished(() => receiver.close())
    const settings = settingsOf(receiver)
    const doomed = await stage.serve(settings)
    const emails = Array.from({ length: SIGN_UPS }, (_, n) => `u${n}@example.com`)
    const signUp = (base: string, email: string) => call(base, 'POST', '/signup', { email, password })
    const asked = (name: string) => receiver.questions().filter(({ metadata }) => metadata.name === name)
    const mailed = new Set<string>()
    const accept: Respond = (response, body) => {
      const { email_data: mail } = JSON.parse(body)
      if (mail) mailed.add(mail.recipient)
      answers({})(response, body)
    }
    receiver.answer((response, body) => {
      if (JSON.parse(body).metadata.name !== hanging) accept(response, body)
    })
    const begun = Promise.all(emails.map((email) => signUp(doomed.base, email)))
    // Mails to one domain leave one after another until it has answered.
    const reached = hanging === 'send-email' ? 1 : SIGN_UPS
    await expect.poll(() => asked(hanging).length).toBeGreaterThanOrEqual(reached)
    await kill(doomed)
    const statuses = (await begun).map(({ status }) => status)
    const acknowledged = emails.filter((_, n) => statuses[n] === 200)
    receiver.answer(accept)
    const usersOf = async () => (await database.query('select email from users order by email')).rows
    const kept = await usersOf()
    if (hanging === 'before-user-created') expect(kept).toEqual([])
    if (hanging === 'after-user-created') expect(kept).toHaveLength(SIGN_UPS)
    const staying = await stage.serve(settings)
    // Users repeat what was not answered; a gap that the killed request took passes first.
    const repeat = (email: string) =>
      expect.poll(async () => (await signUp(staying.base, email)).status, { interval: 500 }).toBe(200)
    await Promise.all(emails.filter((each) => !acknowledged.includes(each)).map(repeat))
    const without = () => emails.filter((email) => !mailed.has(email))
    await expect.poll(without, { timeout: 90_000, interval: 500 }).toEqual([])
    // The mail of a repeated sign-up replaces an earlier one that waits.
    const undecided = `select from messages where state not in ('sent', 'dropped')`
    const left = async () => (await database.query(undecided)).rowCount
    await expect.poll(left, { timeout: 90_000, interval: 500 }).toBe(0)
    const users = await usersOf()
    report(`${hanging} hangs, process killed`, {
      ...{ 'sign-ups': SIGN_UPS, acknowledged: acknowledged.length, 'users at the kill': kept.length },
      ...{ 'mails asked for': asked('send-email').length, 'mails lost': without().length },
      'users lost': SIGN_UPS - users.length,
    })
    expect(users).toEqual(emails.map((email) => ({ email })))
  },
  TEST_WITHIN_MS,
)
