import { connect } from 'node:net'
import { PATIENCE_MS } from './patience.ts'

export interface RawAnswer {
  /** 0 where the connection ended without an answer. */
  status: number
  head: string
  body: string
  /** More than one where more than one request was read out of the bytes. */
  answers: number
}

/**
 * Says bytes that no client would send, and returns what is answered until the connection ends, both in Latin-1. Throws
 * where it does not end.
 */
export async function say(port: number, bytes: string): Promise<RawAnswer> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  // Whoever is refused while they still send may see a reset at the end.
  socket.on('error', () => {})
  socket.on('close', () => resolve())
  const timer = setTimeout(() => {
    reject(new Error(`does not end; so far: ${text.slice(0, 300)}`))
    socket.destroy()
  }, PATIENCE_MS)
  socket.write(bytes, 'latin1')
  await ended.finally(() => clearTimeout(timer))
  // What is said before the answer (RFC 9110 15.2).
  text = text.replace(/^(HTTP\/1\.1 1\d\d .*\r\n\r\n)+/, '')
  const end = text.indexOf('\r\n\r\n')
  const [head, body] = end === -1 ? [text, ''] : [text.slice(0, end), text.slice(end + 4)]
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0),
    head,
    body,
    // A body's end is the next answer's beginning, on the same line.
    answers: [...text.matchAll(/HTTP\/1\.1 \d{3} [^\r\n]*\r\n/g)].length,
  }
}

/**
 * Sends a head and a body, and listens only then, as the simplest clients do: what resets the connection meanwhile is a
 * failure, and its message is among them. `text` is what came until the connection ended.
 */
export async function sayAllThenListen(
  port: number,
  head: string,
  body: Uint8Array,
): Promise<{ text: string; failures: string[] }> {
  const socket = connect(port, '127.0.0.1')
  const failures: string[] = []
  let text = ''
  socket.on('error', ({ message }) => failures.push(message))
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  socket.on('close', () => resolve())
  socket.pause()
  socket.write(head)
  await new Promise<void>((done) => socket.write(body, () => done()))
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.resume()
  await ended
  return { text, failures }
}
