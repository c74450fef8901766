// HTTP of tests: raw sockets, hostile requests, browsers, and answers compared with the document.
import { connect } from 'node:net'
import { PATIENCE_MS } from '../patience.ts'

export interface RawAnswer {
  /** Status; 0 if the connection ended without an answer. */
  status: number
  head: string
  body: string
  /** Number of answers, one for each request that the server read. */
  answers: number
}

/** Sends raw bytes in Latin-1 and resolves to the answer at the end of the connection; throws if it does not end. */
export async function say(port: number, bytes: string): Promise<RawAnswer> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  // A refusal during the request may end with a reset.
  socket.on('error', () => {})
  socket.on('close', () => resolve())
  const timer = setTimeout(() => {
    reject(new Error(`does not end; so far: ${text.slice(0, 300)}`))
    socket.destroy()
  }, PATIENCE_MS)
  socket.write(bytes, 'latin1')
  await ended.finally(() => clearTimeout(timer))
  // Drops interim answers (RFC 9110 15.2).
  text = text.replace(/^(HTTP\/1\.1 1\d\d .*\r\n\r\n)+/, '')
  const end = text.indexOf('\r\n\r\n')
  const [head, body] = end === -1 ? [text, ''] : [text.slice(0, end), text.slice(end + 4)]
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1] ?? 0),
    head,
    body,
    // The next answer begins on the line where the body ends.
    answers: [...text.matchAll(/HTTP\/1\.1 \d{3} [^\r\n]*\r\n/g)].length,
  }
}

/**
 * Sends a head and a body and reads only then, as simple clients do. `failures` has the messages of resets meanwhile.
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
