import { isSpanContextValid, trace } from '@opentelemetry/api'
import { destination, type Logger, pino } from 'pino'

/** Levels of the specification; pino has no `panic`, which we treat as `fatal`. */
export const LOG_LEVELS = ['panic', 'fatal', 'error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type { Logger }

/**
 * JSON lines to stdout (to stderr for commands, whose stdout is their result), or appended to `file`. Requests are logged (`logRequests`) without headers, query and body:
 * each can carry a token, a code or an address.
 */
export function createLogger(options: {
  name: string
  level: LogLevel
  file?: string | undefined
  toStderr?: boolean
}): Logger {
  return pino(
    {
      name: options.name,
      level: options.level === 'panic' ? 'fatal' : options.level,
      base: { service: options.name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      mixin: traceIds,
      serializers: {
        err: withoutRows,
      },
    },
    buffered(
      destination({
        dest: options.file ?? (options.toStderr ? 2 : 1),
        append: true,
        sync: false,
        mkdir: true,
        minLength: 4_096,
      }),
    ),
  )
}

/** Lines wait this long at most for others to be written with; a write per line is a good part of a short request. */
const FLUSH_EVERY_MS = 100

/** What is still waiting when the process exits is written then (pino's exit hook); only kill -9 loses a tenth of a second. */
function buffered(lines: ReturnType<typeof destination>) {
  setInterval(() => lines.flush(), FLUSH_EVERY_MS).unref()
  return lines
}

/**
 * PostgreSQL's errors quote the refused row, and with it addresses and hashes; those of a lost connection carry the whole
 * client and its cancel key. A cause may also be a mere text.
 */
function withoutRows(cause: unknown) {
  if (typeof cause !== 'object' || cause === null) return cause
  const {
    detail: _detail,
    where: _where,
    client: _client,
    ...rest
  } = pino.stdSerializers.errWithCause(cause as Error) as Record<string, unknown>
  return rest
}

function traceIds() {
  const context = trace.getActiveSpan()?.spanContext()
  return context && isSpanContextValid(context) ? { trace_id: context.traceId, span_id: context.spanId } : {}
}
