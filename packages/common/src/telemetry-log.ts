import type { DiagLogger } from '@opentelemetry/api'
import type { Logger } from 'pino'

/** Interval of warnings: an unavailable collector fails an export every few seconds. */
const WARN_EVERY_MS = 60_000

const LONGEST_TEXT = 300

/**
 * Logs the SDK's reports: failures as at most one `warn` a minute, details as `info`. Objects are left out, because they hold whole
 * batches of spans. `now` in milliseconds, by any clock.
 */
export function telemetryLog(log: Logger, now: () => number = () => performance.now()): DiagLogger {
  let warnedAt = Number.NEGATIVE_INFINITY
  let unreported = 0
  const warn = (...report: unknown[]) => {
    if (now() - warnedAt < WARN_EVERY_MS) {
      unreported++
      return
    }
    log.warn({ reason: textOf(report), unreported }, 'telemetry is not exported as configured')
    warnedAt = now()
    unreported = 0
  }
  const detail = (...report: unknown[]) => log.info({ detail: textOf(report) }, 'telemetry SDK')
  return { error: warn, warn, info: detail, debug: detail, verbose: detail }
}

function textOf(report: unknown[]): string {
  const texts = report.filter((part) => typeof part === 'string').map(withoutStack)
  return texts.join(' ').slice(0, LONGEST_TEXT)
}

/** The SDK reports an error as JSON with its stack. */
function withoutStack(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    const { name, code, message } = JSON.parse(text) as Record<string, unknown>
    return [name, code, message].filter((part) => typeof part === 'string' && part !== '').join(' ')
  } catch {
    return text
  }
}
