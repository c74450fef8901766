import { apiError } from '../../errors.ts'
import type { TimeLimits } from '../../time-limits.ts'

/** Slower than any mobile line; below it a connection holds resources without need. */
const SLOWEST_BYTES_PER_SECOND = 16 * 1024

/** Aborts `signal` with upload_too_slow after a slow `uploadWindowMs`, or after `uploadMs`. `stop` must be called. */
export function watchSpeed(
  bytesRead: () => number,
  { uploadWindowMs, uploadMs }: Pick<TimeLimits, 'uploadWindowMs' | 'uploadMs'>,
): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  let seen = bytesRead()
  const timer = setInterval(() => {
    const now = bytesRead()
    if ((now - seen) * 1000 < SLOWEST_BYTES_PER_SECOND * uploadWindowMs) controller.abort(apiError('upload_too_slow'))
    seen = now
  }, uploadWindowMs)
  const tooLong = () => controller.abort(apiError('upload_too_slow', { message: 'The upload took too long.' }))
  const end = setTimeout(tooLong, uploadMs)
  const stop = () => {
    clearInterval(timer)
    clearTimeout(end)
  }
  return { signal: controller.signal, stop }
}
