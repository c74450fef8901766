// Metrics read at each export: process, pool and queues. An export never waits for an unavailable database or disk, and
// keeps no stopped service alive. Metrics that code counts itself: instruments.ts and metrics.ts of each service.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BatchObservableResult, metrics, type Observable } from '@opentelemetry/api'
import type pg from 'pg'
import type { Reads } from '../database/replica.ts'
import { countListenersNotReceiving } from '../listen/probe-listener.ts'
import type { QueueFigures } from '../queue/pg-boss-tables.ts'
import type { Queue } from '../queue/queue.ts'

/** Scrapers give up after ten seconds. */
const ANSWER_WITHIN_MS = 2_000

/** Sampling interval of the event loop: short enough to show a hash on the main thread, long enough to cost nothing. */
const SAMPLE_EVERY_MS = 20

type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>

/** Starts observing, until the returned function is called; call it only with metrics enabled. */
export function observeService(
  service: string,
  { pool, queue, reads }: { pool: PoolCounts; queue: Pick<Queue, 'figures'>; reads: Pick<Reads<never>, 'lagSeconds'> },
): () => void {
  const stops = [observeProcess(service), observePool(service, pool), observeQueues(service, queue)]
  if (reads.lagSeconds() !== undefined) stops.push(observeReplica(service, reads))
  return () => {
    for (const stop of stops) stop()
  }
}

/** Calls `observe` at each export, until the returned function is called. */
export function observeTogether(
  service: string,
  instruments: Observable[],
  observe: (result: BatchObservableResult) => void | Promise<void>,
): () => void {
  const meter = metrics.getMeter(service)
  meter.addBatchObservableCallback(observe, instruments)
  return () => meter.removeBatchObservableCallback(observe, instruments)
}

/**
 * Bounds a question that may fail or hang: one at a time for all exports, and undefined for a failure or a late answer.
 */
export function askedInTime<Answer>(
  ask: () => Promise<Answer>,
  withinMs: number = ANSWER_WITHIN_MS,
): () => Promise<Answer | undefined> {
  let underWay: Promise<Answer | undefined> | undefined
  return async () => {
    underWay ??= ask()
      .catch(() => undefined)
      .finally(() => {
        underWay = undefined
      })
    return Promise.race([underWay, sleep(withinMs, undefined, { ref: false })])
  }
}

const gaugesOf = (service: string) => (name: string, unit: string, description: string) =>
  metrics.getMeter(service).createObservableGauge(name, { description, unit })

function observeProcess(service: string): () => void {
  const gauge = gaugesOf(service)
  const memory = gauge('process.memory.usage', 'By', 'Resident memory')
  const heap = gauge('v8js.memory.heap.used', 'By', 'Heap in use')
  const cpu = metrics
    .getMeter(service)
    .createObservableCounter('process.cpu.time', { description: 'Processor time', unit: 's' })
  const p50 = gauge('nodejs.eventloop.delay.p50', 's', 'Median lag')
  const p99 = gauge('nodejs.eventloop.delay.p99', 's', '99th percentile')
  const max = gauge('nodejs.eventloop.delay.max', 's', 'Longest lag')
  const busy = gauge('nodejs.eventloop.utilization', '1', 'Busy fraction of time')
  const delays = monitorEventLoopDelay({ resolution: SAMPLE_EVERY_MS })
  delays.enable()
  let before = performance.eventLoopUtilization()
  const stop = observeTogether(service, [memory, heap, cpu, p50, p99, max, busy], (result) => {
    const { rss, heapUsed } = process.memoryUsage()
    result.observe(memory, rss)
    result.observe(heap, heapUsed)
    const { user, system } = process.cpuUsage()
    result.observe(cpu, user / 1e6, { 'cpu.mode': 'user' })
    result.observe(cpu, system / 1e6, { 'cpu.mode': 'system' })
    // The histogram holds the time between samples; the lag is its excess over the interval.
    const lag = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - SAMPLE_EVERY_MS / 1000)
    const isSeen = delays.count > 0
    result.observe(p50, isSeen ? lag(delays.percentile(50)) : 0)
    result.observe(p99, isSeen ? lag(delays.percentile(99)) : 0)
    result.observe(max, isSeen ? lag(delays.max) : 0)
    delays.reset()
    const now = performance.eventLoopUtilization()
    result.observe(busy, performance.eventLoopUtilization(now, before).utilization)
    before = now
  })
  return () => {
    stop()
    delays.disable()
  }
}

function observePool(service: string, pool: PoolCounts): () => void {
  const gauge = gaugesOf(service)
  const connections = gauge('db.client.connection.count', '{connection}', 'Connections to the database')
  const pending = gauge(
    'db.client.connection.pending_requests',
    '{request}',
    'Requests that wait for a connection to the database',
  )
  const notReceiving = gauge(
    `${service}.listeners.deaf`,
    '{connection}',
    'LISTEN connections on which no notifications arrive; polling replaces them',
  )
  return observeTogether(service, [connections, pending, notReceiving], (result) => {
    const { totalCount, idleCount, waitingCount } = pool
    result.observe(connections, totalCount - idleCount, { 'db.client.connection.state': 'used' })
    result.observe(connections, idleCount, { 'db.client.connection.state': 'idle' })
    result.observe(pending, waitingCount)
    result.observe(notReceiving, countListenersNotReceiving())
  })
}

function observeReplica(service: string, { lagSeconds }: Pick<Reads<never>, 'lagSeconds'>): () => void {
  const lag = gaugesOf(service)('database.replica.lag', 's', 'Lag of the replica')
  return observeTogether(service, [lag], (result) => result.observe(lag, lagSeconds() as number))
}

/** All processes report the same database figures: aggregate by maximum, never by sum. */
function observeQueues(service: string, queue: Pick<Queue, 'figures'>): () => void {
  const gauge = gaugesOf(service)
  const jobs = gauge(`${service}.queue.jobs`, '{job}', 'Unfinished jobs')
  const age = gauge(`${service}.queue.oldest_age`, 's', 'Age of the oldest job')
  const dead = gauge(`${service}.queue.dead`, '{job}', 'Jobs in the dead-letter queue')
  const ask = askedInTime(queue.figures)
  let last: QueueFigures[] = []
  return observeTogether(service, [jobs, age, dead], async (result) => {
    last = (await ask()) ?? last.map(unknownFigures)
    for (const figures of last) {
      const { queue: name } = figures
      for (const state of ['waiting', 'scheduled', 'running', 'retrying'] as const) {
        result.observe(jobs, figures[state], { queue: name, state })
      }
      result.observe(age, figures.oldestWaitingSeconds, { queue: name, state: 'waiting' })
      result.observe(age, figures.oldestRetryingSeconds, { queue: name, state: 'retrying' })
      result.observe(dead, figures.dead, { queue: name })
    }
  })
}

/** Observed explicitly: the SDK repeats the last value of an instrument forever. */
const unknownFigures = (figures: QueueFigures) =>
  Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [name, typeof value === 'number' ? Number.NaN : value]),
  ) as unknown as QueueFigures
