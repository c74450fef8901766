// Writes log lines, many at a time. The one rule: a log that cannot be written is no failure of the service. sonic-boom, which
// pino brings, ends the process at a full disk, and tries for ever when the process is to end by itself.
import { write, writeSync } from 'node:fs'

interface LogLines {
  write(line: string): void
  /** Calls back once what was waiting is written, or could not be. */
  flush(done?: () => void): void
  /** What is waiting, now: for a process that is about to end. Not what is being written already. */
  flushSync(): void
}

/** Lines are written when so much is waiting, in characters; a write per line is a good part of a short request. */
const WORTH_A_WRITE = 4_096

/** Others wait this long at most. */
const FLUSH_EVERY_MS = 100

/** Kept for a disk with room again or a reader that goes on, in characters; further lines are lost, or they would fill the memory. */
const MAX_WAITING = 4 * 1024 * 1024

/** Times a last write is tried on a pipe whose reader is slow. */
const MAX_LAST_TRIES = 10

export function openLogLines(fd: number): LogLines {
  let waiting = ''
  let unwritten = Buffer.alloc(0)
  let isWriting = false
  let isFailing = false
  let asked: (() => void)[] = []

  const settle = (error: NodeJS.ErrnoException | null) => {
    isWriting = false
    if (error && !isFailing && !isBusy(error)) tellOnStderr(error)
    isFailing = error !== null && !isBusy(error)
    const done = asked
    asked = []
    for (const callBack of done) callBack()
  }
  const writeOn = () => {
    isWriting = true
    write(fd, unwritten, (error, count) => {
      if (error) return settle(error)
      unwritten = unwritten.subarray(count)
      if (unwritten.length > 0) return writeOn()
      settle(null)
      if (waiting.length >= WORTH_A_WRITE) begin()
    })
  }
  const begin = () => {
    if (isWriting) return
    if (unwritten.length === 0) take()
    if (unwritten.length > 0) writeOn()
  }
  const take = () => {
    unwritten = Buffer.from(waiting)
    waiting = ''
  }

  const lines: LogLines = {
    write(line) {
      if (waiting.length + line.length > MAX_WAITING) return
      waiting += line
      if (waiting.length >= WORTH_A_WRITE && !isFailing) begin()
    },
    flush(done) {
      if (done) asked.push(done)
      begin()
      if (!isWriting) settle(null)
    },
    flushSync() {
      if (isWriting) {
        writeNow(fd, Buffer.from(waiting))
        waiting = ''
        return
      }
      writeNow(fd, unwritten)
      take()
      writeNow(fd, unwritten)
      unwritten = Buffer.alloc(0)
    },
  }
  setInterval(begin, FLUSH_EVERY_MS).unref()
  if (open.size === 0) process.on('exit', () => open.forEach((each) => void each.flushSync()))
  open.add(lines)
  return lines
}

/** Written out when the process exits; only kill -9 loses a tenth of a second. */
const open = new Set<LogLines>()

const isBusy = ({ code }: NodeJS.ErrnoException) => code === 'EAGAIN' || code === 'EBUSY'

function writeNow(fd: number, bytes: Buffer): void {
  let rest = bytes
  for (let tries = 0; rest.length > 0 && tries < MAX_LAST_TRIES; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
    } catch (error) {
      if (!isBusy(error as NodeJS.ErrnoException)) return
      tries++
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}

/** Past `process.stderr`, whose failure would be an error of its own: it may be on the same disk. */
function tellOnStderr({ code }: NodeJS.ErrnoException): void {
  try {
    writeSync(2, `log lines cannot be written (${code}); serving goes on\n`)
  } catch {}
}
