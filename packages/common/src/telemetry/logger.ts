import fs, { mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { isSpanContextValid, trace } from '@opentelemetry/api'
import { destination, type Logger, pino } from 'pino'
import { ConfigError } from '../config/variables.ts'

/** Levels of the specification; `panic`, which pino lacks, is `fatal`. */
export const LOG_LEVELS = ['panic', 'fatal', 'error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type { Logger }

/**
 * Writes JSON lines to stdout, to stderr for commands, or to `file`. Request headers, queries and bodies are never
 * logged: each can carry a token, a code or an address. Throws a ConfigError for a file that cannot be opened.
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
      serializers: { err: withoutRows },
    },
    openLines(
      options.file ? { fd: openFile(options.name, options.file) } : { fd: options.toStderr ? 2 : 1, ...options },
    ),
  )
}

/** Exit code of a command whose reader is gone: that of a program which SIGPIPE ends. */
export const OUTPUT_CLOSED = 141

/** Longest wait of a line for a shared write; a write per line is a large part of a short request. */
const FLUSH_EVERY_MS = 100

/** Bytes kept while the disk is full; further lines are dropped to bound the memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024

/**
 * Waiting lines are written at exit (pino's exit hook); kill -9 loses those of the last tenth of a second. An
 * unwritable log does not stop the service: pino's writer would end it. A command ends when its output is closed.
 */
function openLines({ fd, toStderr: isCommand = false }: { fd: number; toStderr?: boolean }) {
  const lines = destination({ dest: fd, sync: false, minLength: 4_096, maxLength: MAX_WAITING_BYTES })
  const flushSync = lines.flushSync.bind(lines)
  let isFailing = false
  lines.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (isCommand && code === 'EPIPE') {
      isFailing = true
      process.exit(OUTPUT_CLOSED)
    }
    if (!isFailing) writeToStderr(`log lines cannot be written (${code}); serving goes on\n`)
    isFailing = true
  })
  // A flush makes a system call even without lines, so an idle process must not flush.
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
    // A flush does nothing during a write (a slow disk, a full pipe) or after a failed one.
    if (unwritten > 0) flushSoon()
  }
  lines.on('write', (bytes) => {
    isFailing = false
    unwritten = Math.max(0, unwritten - bytes)
  })
  lines.on('drop', (line) => {
    unwritten -= Buffer.byteLength(line)
  })
  lines.flushSync = () => {
    if (isFailing) return
    onceOnly(flushSync)
    unwritten = 0
  }
  lines.write = (line) => {
    unwritten += Buffer.byteLength(line)
    flushSoon()
    return write(line)
  }
  return lines
}

/**
 * Runs a flush that would retry each failure forever (sonic-boom 4.2, flushSync): text of a failed write counts as
 * written.
 */
function onceOnly(flushSync: () => void): void {
  const { writeSync: write } = fs
  const writeOrDrop = (fd: number, text: string, encoding?: BufferEncoding): number => {
    try {
      return write(fd, text, null, encoding)
    } catch (error) {
      if (/^(EAGAIN|EBUSY)$/.test(String((error as NodeJS.ErrnoException).code))) throw error
      return Buffer.byteLength(text)
    }
  }
  fs.writeSync = writeOrDrop as typeof write
  try {
    flushSync()
  } finally {
    fs.writeSync = write
  }
}

/** Bypasses `process.stderr`, whose own failure would raise an error. */
function writeToStderr(text: string): void {
  try {
    writeSync(2, text)
  } catch {}
}

/** Opens the file at start, so that a wrong path stops the start. */
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
 * Drops what PostgreSQL's errors carry: the refused row, with addresses and hashes, or the client with its cancel key.
 */
function withoutRows(cause: unknown) {
  if (typeof cause !== 'object' || cause === null) return cause
  const { detail: _detail, where: _where, client: _client, ...rest } = pino.stdSerializers.errWithCause(cause as Error)
  return rest
}

function traceIds() {
  const context = trace.getActiveSpan()?.spanContext()
  return context && isSpanContextValid(context) ? { trace_id: context.traceId, span_id: context.spanId } : {}
}
