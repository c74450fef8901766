// Metrics read at each export: process, pool and queues. The one rule: an export never waits for an unavailable database or disk,
// and keeps no stopped service alive. Metrics that code counts itself: instruments.ts and metrics.ts of each service.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BatchObservableResult, metrics, type Observable } from '@opentelemetry/api'
import type pg from 'pg'
import type { QueueFigures } from './pg-boss-tables.ts'
import type { Queue } from './queue.ts'

/** Scrapers give up after ten seconds. */
const ANSWER_WITHIN_MS = 2_000

/** Sampling interval of the event loop: short enough to show a hash on the main thread, long enough to cost nothing. */
const SAMPLE_EVERY_MS = 20

/** Starts observing, until the returned function is called; call it only with metrics enabled. */
export function observeService(
  service: string,
  { pool, queue }: { pool: Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>; queue: Pick<Queue, 'figures'> },
): () => void {
  const stops = [observeProcess(service), observePool(service, pool), observeQueues(service, queue)]
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

/** Bounds a question that may fail or hang: one at a time for all exports, and undefined for a failure or a late answer. */
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

function observeProcess(service: string): () => void {
  const meter = metrics.getMeter(service)
  const memory = meter.createObservableGauge('process.memory.usage', { description: 'Resident memory', unit: 'By' })
  const heap = meter.createObservableGauge('v8js.memory.heap.used', { description: 'Heap in use', unit: 'By' })
  const cpu = meter.createObservableCounter('process.cpu.time', { description: 'Processor time', unit: 's' })
  const p50 = meter.createObservableGauge('nodejs.eventloop.delay.p50', { description: 'Median lag', unit: 's' })
  const p99 = meter.createObservableGauge('nodejs.eventloop.delay.p99', { description: '99th percentile', unit: 's' })
  const max = meter.createObservableGauge('nodejs.eventloop.delay.max', { description: 'Longest lag', unit: 's' })
  const busy = meter.createObservableGauge('nodejs.eventloop.utilization', {
    description: 'Busy fraction of time',
    unit: '1',
  })
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

function observePool(service: string, pool: Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>): () => void {
  const meter = metrics.getMeter(service)
  const connections = meter.createObservableGauge('db.client.connection.count', {
    description: 'Connections to the database',
    unit: '{connection}',
  })
  const pending = meter.createObservableGauge('db.client.connection.pending_requests', {
    description: 'Requests that wait for a connection to the database',
    unit: '{request}',
  })
  return observeTogether(service, [connections, pending], (result) => {
    const { totalCount, idleCount, waitingCount } = pool
    result.observe(connections, totalCount - idleCount, { 'db.client.connection.state': 'used' })
    result.observe(connections, idleCount, { 'db.client.connection.state': 'idle' })
    result.observe(pending, waitingCount)
  })
}

/** All processes report the same database figures: aggregate by maximum, never by sum. */
function observeQueues(service: string, queue: Pick<Queue, 'figures'>): () => void {
  const meter = metrics.getMeter(service)
  const jobs = meter.createObservableGauge(`${service}.queue.jobs`, { description: 'Unfinished jobs', unit: '{job}' })
  const age = meter.createObservableGauge(`${service}.queue.oldest_age`, {
    description: 'Age of the oldest job',
    unit: 's',
  })
  const dead = meter.createObservableGauge(`${service}.queue.dead`, {
    description: 'Jobs in the dead-letter queue',
    unit: '{job}',
  })
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
