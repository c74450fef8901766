import { apiError } from '../errors.ts'

/** Slower than any telephone line; a connection that only pretends to send is a resource held for nothing. */
const SLOWEST_BYTES_PER_SECOND = 16 * 1024
const WINDOW_SECONDS = 30

/** Aborts `signal` with upload_too_slow when too little came within half a minute. `stop` must be called. */
export function watchSpeed(bytesRead: () => number): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  let seen = bytesRead()
  const timer = setInterval(() => {
    const now = bytesRead()
    if (now - seen < SLOWEST_BYTES_PER_SECOND * WINDOW_SECONDS) controller.abort(apiError('upload_too_slow'))
    seen = now
  }, WINDOW_SECONDS * 1000)
  return { signal: controller.signal, stop: () => clearInterval(timer) }
}
