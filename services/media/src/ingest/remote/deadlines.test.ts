import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startDeadlines } from './deadlines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const TIMEOUTS = { connectMs: 1_000, headersMs: 1_000, idleMs: 1_000, totalMs: 600_000 }

test('a steady body is not given up, whatever the window; one that becomes slower is', () => {
  const lowSpeed = { bytesPerSecond: 100, windowMs: 1_000, graceMs: 500 }
  const { signal, startLowSpeedWatch, countBytes, stop } = startDeadlines({ ...TIMEOUTS, lowSpeed }, undefined)
  startLowSpeedWatch()
  vi.advanceTimersByTime(lowSpeed.graceMs)
  for (let second = 0; second < 60; second++) {
    for (let piece = 0; piece < 10; piece++) {
      countBytes(10)
      vi.advanceTimersByTime(100)
    }
  }
  expect(signal.aborted).toBe(false)
  countBytes(99)
  vi.advanceTimersByTime(lowSpeed.windowMs)
  expect(signal.reason).toMatchObject({ code: 'source_fetch_failed', details: { upstream: 'too_slow' } })
  stop()
  expect(vi.getTimerCount()).toBe(0)
})
