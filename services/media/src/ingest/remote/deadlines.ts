import { upstreamFailure } from './upstream-error.ts'

export interface RemoteTimeouts {
  connectMs: number
  headersMs: number
  idleMs: number
  /** Limit from the first DNS query to the last byte, redirects included. */
  totalMs: number
  /**
   * After `graceMs`, a body slower than this average over `windowMs` is given up: a drip feed passes every idle limit.
   */
  lowSpeed: { bytesPerSecond: number; windowMs: number; graceMs: number }
}

/** Aborts `signal` with an ApiError when a transfer is too long or too slow, or with the caller's reason. */
export function startDeadlines({ totalMs, lowSpeed }: RemoteTimeouts, callerSignal: AbortSignal | undefined) {
  const controller = new AbortController()
  const total = setTimeout(() => controller.abort(upstreamFailure('timeout')), totalMs)
  const signal = callerSignal ? AbortSignal.any([controller.signal, callerSignal]) : controller.signal
  let watch: NodeJS.Timeout | undefined
  let bytesInWindow = 0

  const checkSpeed = () => {
    const expected = (lowSpeed.bytesPerSecond * lowSpeed.windowMs) / 1000
    if (bytesInWindow < expected) controller.abort(upstreamFailure('too_slow'))
    startWindow()
  }
  const startWindow = () => {
    bytesInWindow = 0
    watch = setTimeout(checkSpeed, lowSpeed.windowMs)
  }

  return {
    signal,
    startLowSpeedWatch: () => {
      watch = setTimeout(startWindow, lowSpeed.graceMs)
    },
    countBytes: (bytes: number) => {
      bytesInWindow += bytes
    },
    /** Must be called when the transfer ends, however it ends. */
    stop: () => {
      clearTimeout(total)
      clearTimeout(watch)
    },
  }
}
