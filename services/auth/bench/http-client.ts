import { connect, type Socket } from 'node:net'

export interface Answer {
  status: number
  body: string
}

export type Send = (request: { method: string; path: string; headers?: string; body?: string }) => Promise<Answer>

/**
 * Keeps one connection, sends one request at a time, and parses only status, length and body. A full HTTP client would
 * use a good part of the two cores under measurement.
 */
export function openConnection(base: string): Send {
  const { hostname, port, host } = new URL(base)
  const socket: Socket = connect(Number(port), hostname).setNoDelay(true)
  let received = ''
  let settle: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0)
    const body = received.slice(headEnd + 4)
    if (Buffer.byteLength(body) < length) return
    const status = Number(received.slice(9, 12))
    received = ''
    settle?.resolve({ status, body })
  })
  socket.on('error', (error) => settle?.reject(error))
  socket.unref()

  return ({ method, path, headers = '', body = '' }) => {
    const length = body ? `content-length: ${Buffer.byteLength(body)}\r\n` : ''
    socket.write(`${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n${headers}${length}\r\n${body}`)
    return new Promise((resolve, reject) => {
      settle = { resolve, reject }
    })
  }
}
