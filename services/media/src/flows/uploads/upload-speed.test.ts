import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TIME_LIMITS } from '../../time-limits.ts'
import { watchSpeed } from './upload-speed.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('an upload at 16 KiB a second goes on, a slower one is aborted within a minute', () => {
  let bytes = 1_000
  const watch = watchSpeed(() => bytes, TIME_LIMITS)
  for (let n = 0; n < 5; n++) {
    bytes += 30 * 16 * 1024
    vi.advanceTimersByTime(30_000)
  }
  expect(watch.signal.aborted).toBe(false)
  bytes += 30 * 16 * 1024 - 1
  vi.advanceTimersByTime(30_000)
  expect(watch.signal.reason).toMatchObject({ code: 'upload_too_slow', status: 408 })
  watch.stop()
  expect(vi.getTimerCount()).toBe(0)
})
