// Slots for first attempts and for retries, groups, and the statements that they cost.
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { createLogger } from '../telemetry/logger.ts'
import { pooledAddress } from '../testing/database/pooled.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { openQueue, type Queue } from './queue.ts'

const log = createLogger({ name: 'test', level: 'fatal' })

const QUEUES = ['retries', 'cut', 'order', 'together', 'groups', 'crowded', 'statements', 'idle', 'due'].map(
  (name) => ({
    ...{ name, retryLimit: 3, retryDelaySeconds: 1, retryDelayMaxSeconds: 1 },
    ...{ expireInSeconds: 600, heartbeatSeconds: 10 },
  }),
)

let database: Awaited<ReturnType<typeof cloneTemplate>>
let queue: Queue
let db: ReturnType<typeof openDatabase>['db']

beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_lanes`, async () => {})
  ;({ db } = openDatabase({ ...pooledAddress(database.url), maxPoolSize: 4, applicationName: 'test', log }))
  queue = await openQueue({
    url: database.url,
    schema: 'jobs',
    applicationName: 'test',
    queues: QUEUES,
    log,
    migrate: true,
    supervise: true,
    notify: 'each',
    // No time passes, so a group's turns are its counts.
    nowMs: () => 0,
  })
})

afterAll(async () => {
  await queue.stop(1_000)
  await db.destroy()
  await database.drop()
})

const send = (name: string, data: object, group?: string) =>
  db.transaction().execute((trx) => queue.send(trx, name, data, group === undefined ? {} : { group }))

function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

test('retries that never end leave half of the slots to first attempts', async () => {
  const { opened, open } = gate()
  let hanging = 0
  const done: string[] = []
  const slots = { concurrency: 4, maxRetries: 2, pollSeconds: 1 }
  await queue.work<{ id: string; hangs?: true }>('retries', slots, async ({ data, retryCount }) => {
    if (data.hangs && retryCount === 0) throw new Error('not yet')
    if (data.hangs) {
      hanging++
      await opened
    }
    done.push(data.id)
  })
  for (let i = 0; i < 6; i++) await send('retries', { id: `hangs ${i}`, hangs: true })
  await expect.poll(() => hanging).toBe(2)
  for (let i = 0; i < 4; i++) await send('retries', { id: `first ${i}` })
  await expect.poll(() => done.toSorted()).toEqual(['first 0', 'first 1', 'first 2', 'first 3'])
  expect(hanging).toBe(2)
  open()
  await expect.poll(() => done.length).toBe(10)
})

test('a job whose first attempt was cut off goes behind first attempts once it fails', async () => {
  const { opened, open } = gate()
  const COUNT = 6
  const names = { url: database.url, schema: 'jobs', applicationName: 'test', queues: QUEUES, log }
  const killed = await openQueue({ ...names, migrate: false, supervise: false })
  let begun = 0
  await killed.work('cut', { concurrency: COUNT }, async () => {
    begun++
    await opened
  })
  for (let i = 0; i < COUNT; i++) await send('cut', { id: `cut ${i}` })
  await expect.poll(() => begun).toBe(COUNT)
  await killed.stop(0)
  let [failed, hanging] = [0, 0]
  const done: string[] = []
  const slots = { concurrency: 4, maxRetries: 2, pollSeconds: 1 }
  await queue.work<{ id: string }>('cut', slots, async ({ data, retryCount }) => {
    if (retryCount === 1) {
      failed++
      throw new Error('not yet')
    }
    if (retryCount === 2) {
      hanging++
      await opened
    }
    done.push(data.id)
  })
  await expect.poll(() => failed).toBe(COUNT)
  await expect.poll(() => hanging).toBeGreaterThanOrEqual(2)
  for (let i = 0; i < 4; i++) await send('cut', { id: `first ${i}` })
  await expect.poll(() => done.toSorted()).toEqual(['first 0', 'first 1', 'first 2', 'first 3'])
  expect(hanging).toBe(2)
  open()
  await expect.poll(() => done.length).toBe(COUNT + 4)
})

const CROWD = 50
const crowd = Array.from({ length: CROWD }, (_, id) => ({ data: { id }, group: 'crowd' }))

test.for([
  [
    'order',
    async () => {
      for (const { data, group } of crowd) await send('order', data, group)
    },
  ],
  ['together', () => db.transaction().execute((trx) => queue.sendMany(trx, 'together', crowd))],
] as const)(
  'a newcomer comes before the rest of a group with many jobs, and those keep their order: %s',
  async ([name, sendCrowd]) => {
    await sendCrowd()
    await send(name, { id: 'newcomer' }, 'newcomer')
    const done: unknown[] = []
    await queue.work<{ id: unknown }>(name, { concurrency: 1 }, async ({ data }) => void done.push(data.id))
    await expect.poll(() => done.length).toBe(CROWD + 1)
    expect(done.indexOf('newcomer')).toBeLessThan(CROWD)
    expect(done.filter((id) => id !== 'newcomer')).toEqual(crowd.map(({ data: { id } }) => id))
  },
)

test('a group whose jobs never end leaves slots to all others', async () => {
  const { opened, open } = gate()
  let hanging = 0
  const done: string[] = []
  const slots = { concurrency: 4, maxPerTenant: 2, maxRetries: 2, pollSeconds: 3_600 }
  await queue.work<{ id: string }>('groups', slots, async ({ data, group }) => {
    if (group === 'hangs') {
      hanging++
      await opened
    }
    done.push(data.id)
  })
  for (let i = 0; i < 8; i++) await send('groups', { id: `hangs ${i}` }, 'hangs')
  await expect.poll(() => hanging).toBe(2)
  for (let i = 0; i < 6; i++) await send('groups', { id: `other ${i}` }, `other ${i % 2}`)
  await expect.poll(() => done.length).toBe(6)
  expect(hanging).toBe(2)
  open()
  await expect.poll(() => done.length).toBe(14)
})

test('a group with many jobs costs no search per job by slots that may not take them', async () => {
  const JOBS = 60
  for (let i = 0; i < JOBS; i++) await send('crowded', { id: i }, 'crowd')
  const sentAt = Date.now()
  await expect.poll(() => Date.now() - sentAt).toBeGreaterThan(1_000)
  const query = vi.spyOn(pg.Client.prototype, 'query')
  try {
    let done = 0
    const slots = { concurrency: 8, maxPerTenant: 1, maxRetries: 4, pollSeconds: 3_600 }
    const startedAt = Date.now()
    await queue.work('crowded', slots, async () => void done++)
    await expect.poll(() => done).toBe(JOBS)
    // A search per job, some that meet at the same one, each slot's first, and two a second by those that find nothing.
    const searches = searchesOf(query.mock.calls, 'crowded')
    const inVain = 2 * Math.ceil((Date.now() - startedAt) / 1_000)
    expect(searches).toBeLessThanOrEqual(1.5 * JOBS + 8 + inVain)
  } finally {
    query.mockRestore()
  }
})

const searchesOf = (calls: unknown[][], name: string) =>
  calls.filter(([asked]) => {
    const { text = '' } = asked as { text?: string }
    return text.includes(`name = '${name}'`) && /skip locked/i.test(text)
  }).length

test('an idle queue searches once per lane at each poll, not once per slot', async () => {
  const query = vi.spyOn(pg.Client.prototype, 'query')
  vi.useFakeTimers({ toFake: ['setInterval'] })
  try {
    const searches = () => searchesOf(query.mock.calls, 'idle')
    const SLOTS = 8
    const slots = { concurrency: SLOTS, maxRetries: SLOTS / 2, pollSeconds: 1 }
    await queue.work('idle', slots, async () => {})
    await expect.poll(searches).toBe(SLOTS)
    for (let polls = 1; polls <= 3; polls++) {
      vi.advanceTimersToNextTimer()
      await expect.poll(searches).toBe(SLOTS + 2 * polls)
    }
  } finally {
    vi.useRealTimers()
    query.mockRestore()
  }
})

test('jobs that are due begin while other slots of their lane hang', async () => {
  const { opened, open } = gate()
  const done: string[] = []
  let hanging = 0
  await queue.work<{ id: string }>('due', { concurrency: 3, pollSeconds: 1 }, async ({ data }) => {
    if (data.id === 'hangs') {
      hanging++
      await opened
    }
    done.push(data.id)
  })
  for (let i = 0; i < 2; i++) await send('due', { id: 'hangs' })
  await expect.poll(() => hanging).toBe(2)
  await db.transaction().execute((trx) => queue.send(trx, 'due', { id: 'due' }, { afterSeconds: 1 }))
  await expect.poll(() => done).toEqual(['due'])
  open()
  await expect.poll(() => done.length).toBe(3)
})

test('a job wakes a slot of each lane, not every slot', async () => {
  const query = vi.spyOn(pg.Client.prototype, 'query')
  const searches = () => searchesOf(query.mock.calls, 'statements')
  try {
    let done = 0
    const SLOTS = 16
    const slots = { concurrency: SLOTS, maxRetries: SLOTS / 2, pollSeconds: 3_600 }
    await queue.work('statements', slots, async () => void done++)
    // Each slot looks once at its start.
    await expect.poll(searches).toBe(SLOTS)
    await send('statements', {})
    await expect.poll(() => queue.depth('statements')).toBe(0)
    expect(done).toBe(1)
    // Two for the notification, two for the slots after those, one at the end of the job.
    expect(searches() - SLOTS).toBeLessThanOrEqual(5)
  } finally {
    query.mockRestore()
  }
})
