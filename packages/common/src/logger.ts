import { mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { isSpanContextValid, trace } from '@opentelemetry/api'
import { destination, type Logger, pino } from 'pino'
import { ConfigError } from './config.ts'

/** Levels of the specification; pino has no `panic`, which we treat as `fatal`. */
export const LOG_LEVELS = ['panic', 'fatal', 'error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type { Logger }

/**
 * JSON lines to stdout (to stderr for commands, whose stdout is their result), or appended to `file`. Requests are logged
 * (`logRequests`) without headers, query and body: each can carry a token, a code or an address. Throws a ConfigError for a
 * file that cannot be opened.
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
    openLines(options.file ? openFile(options.name, options.file) : options.toStderr ? 2 : 1),
  )
}

/** Lines wait this long at most for others to be written with; a write per line is a good part of a short request. */
const FLUSH_EVERY_MS = 100

/** Kept for a disk with room again, in bytes; further lines are lost, or they would fill the memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024

/**
 * Lines that still wait when the process exits are written then (pino's exit hook); kill -9 loses those that the disk or pipe did
 * not take within a tenth of a second. A
 * log that cannot be written is no failure of the service: pino's writer would end it, and, asked to write out what is
 * waiting at its end, try for ever (sonic-boom 4.2, flushSync).
 */
function openLines(fd: number) {
  const lines = destination({ dest: fd, sync: false, minLength: 4_096, maxLength: MAX_WAITING_BYTES })
  const flushSync = lines.flushSync.bind(lines)
  let isFailing = false
  lines.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (!isFailing) tellOnStderr(`log lines cannot be written (${code}); serving goes on\n`)
    isFailing = true
  })
  lines.on('write', () => {
    isFailing = false
  })
  // Flushing writes even when no line waits, so that an idle process would make a system call each time.
  const write = lines.write.bind(lines)
  let unwritten = 0
  let isWaiting = false
  const flushSoon = () => {
    if (isWaiting) return
    isWaiting = true
    setTimeout(flush, FLUSH_EVERY_MS).unref()
  }
  const flush = () => {
    isWaiting = false
    lines.flush()
    // A flush does nothing while a write is under way (a slow disk, a full pipe) or after one that failed.
    if (unwritten > 0) flushSoon()
  }
  lines.on('write', (bytes) => {
    unwritten = Math.max(0, unwritten - bytes)
  })
  lines.on('drop', (line) => {
    unwritten -= Buffer.byteLength(line)
  })
  lines.flushSync = () => {
    if (isFailing) return
    flushSync()
    unwritten = 0
  }
  lines.write = (line) => {
    unwritten += Buffer.byteLength(line)
    flushSoon()
    return write(line)
  }
  return lines
}

/** Past `process.stderr`, whose failure would be an error of its own: it may be on the same disk. */
function tellOnStderr(text: string): void {
  try {
    writeSync(2, text)
  } catch {}
}

/** At once, so that a wrong path is found before anything is served. */
function openFile(service: string, file: string): number {
  try {
    mkdirSync(dirname(file), { recursive: true })
    return openSync(file, 'a')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new ConfigError([`${service.toUpperCase()}_LOG_FILE cannot be opened for writing (${code})`], cause)
  }
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
