import { Readable } from 'node:stream'

/** Held for a stalled reader, as much as of a file on disk (piped-file.ts). */
const BUFFER_BYTES = 64 * 1024

/** An answer's body, failing (`explain`) when the source ends early or idles for `idleMs`; a slow reader is fine. */
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
