import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { AnyTransaction } from '../database/after-commit.ts'
import { createNotifications } from './batched-notify.ts'

// Outside a transaction, all counts as committed.
const committed = new Kysely({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
}) as AnyTransaction

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function start() {
  const sent: unknown[] = []
  const execute = async (_: string, [, payloads]: unknown[]) => void sent.push(payloads)
  const notifications = createNotifications({ channel: 'c', mode: 'batched', execute, log: pino({ enabled: false }) })
  return { sent, ...notifications }
}

test('the first notification is sent at once, those of the next 50 ms together, each payload once', async () => {
  const { sent, send } = start()
  await send(committed, 'first')
  for (const payload of ['mail', 'sms', 'mail']) await send(committed, payload)
  expect(sent).toEqual([['first']])
  vi.advanceTimersByTime(49)
  expect(sent).toEqual([['first']])
  vi.advanceTimersByTime(1)
  expect(sent).toEqual([['first'], ['mail', 'sms']])
  await send(committed, 'third')
  expect(sent).toHaveLength(2)
  vi.advanceTimersByTime(50)
  vi.advanceTimersByTime(50)
  await send(committed, 'after a pause')
  expect(sent.slice(2)).toEqual([['third'], ['after a pause']])
})

test('a stop sends what waits for the interval', async () => {
  const { sent, send, flush } = start()
  await send(committed, 'first')
  await send(committed, 'last')
  await flush()
  expect(sent).toEqual([['first'], ['last']])
  expect(vi.getTimerCount()).toBe(0)
})

test('a notification that cannot be sent delays only its jobs', async () => {
  const execute = () => Promise.reject(new Error('no database'))
  const log = pino({ enabled: false })
  const { send, flush } = createNotifications({ channel: 'c', mode: 'batched', execute, log })
  await send(committed, 'lost')
  await expect(flush()).resolves.toBeUndefined()
})
