import { Readable } from 'node:stream'

/** As much waits for a reader that stalls, as with a file (disk-blobs.ts). */
const BUFFER_BYTES = 64 * 1024

/**
 * The body of an answer, which fails when its source ends early or sends nothing for `idleMs`. The clock runs only while we
 * wait for the source: a reader may take its time. `explain` makes the failure.
 */
export function readPatiently(source: Readable, idleMs: number, explain: (error: unknown) => Error): Readable {
  let hasEnded = false
  let timer: NodeJS.Timeout | undefined
  const stopClock = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const output = new Readable({
    highWaterMark: BUFFER_BYTES,
    read: () => {
      timer ??= setTimeout(() => output.destroy(explain(new Error(`no byte in ${idleMs} ms`))), idleMs)
      source.resume()
    },
    destroy: (error, done) => {
      stopClock()
      source.destroy()
      done(error)
    },
  })
  source.on('data', (chunk) => {
    stopClock()
    if (!output.push(chunk)) source.pause()
  })
  source.on('end', () => {
    hasEnded = true
    stopClock()
    output.push(null)
  })
  source.on('error', (error) => output.destroy(explain(error)))
  source.on('close', () => {
    if (!hasEnded) output.destroy(explain(new Error('the connection ended early')))
  })
  source.pause()
  return output
}
