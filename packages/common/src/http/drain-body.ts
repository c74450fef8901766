// Requests answered before their body has arrived: a refused token, a body that is too large. The rest is read before
// the connection closes. Unread bytes would cause a reset that may cost the client the answer (RFC 9112, 9.6).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { hasBody } from './request-hooks.ts'

export interface UnreadBodyBounds {
  /** Time from the answer to the end of the connection; nginx lingers as long. */
  ms: number
  /** Bytes read after the answer; by default more than the largest upload. */
  bytes: number
  /** Connections read at once; one more closes the oldest. */
  connections: number
}

const BOUNDS: UnreadBodyBounds = { ms: 30_000, bytes: 256 * 1024 ** 2, connections: 256 }

const MS_WHILE_STOPPING = 1_000

export interface UnreadBodies {
  /**
   * Reads and discards the rest of a body after the answer, within bounds. A connection that ends with the answer
   * (HTTP/1.0, `Connection: close`) is closed for writing at once and for reading after the body.
   */
  watch(app: FastifyInstance): void
  /** Writes the last answer to a connection whose bytes are no HTTP, and discards the rest. */
  endUnreadable(socket: Socket, answer: string): void
  /** Whether a connection is only read to its end and gets no further answer. */
  isReadToItsEnd(socket: Socket): boolean
}

export function openUnreadBodies(bounds: Partial<UnreadBodyBounds> = {}): UnreadBodies {
  const limits = { ...BOUNDS, ...bounds }
  /** Connections being read, oldest answer first. */
  const readOn = new Set<Socket>()

  function readRest(request: IncomingMessage): void {
    const { socket } = request
    const { destroySoon } = socket
    // Node calls this next when the answer ends the connection.
    socket.destroySoon = () => void socket.end()
    // A form parser that stopped reading would go on buffering.
    request.unpipe()
    const stop = discard(request, socket)
    request.once('end', () => {
      stop()
      socket.destroySoon = destroySoon
      if (socket.writableEnded) socket.destroySoon()
    })
  }

  /**
   * Discards bytes up to the limits; the returned function stops. `source` is the request if there is one, because Node
   * does not resume a socket that its parser paused.
   */
  function discard(source: Readable, socket: Socket): () => void {
    const [oldest] = readOn
    if (oldest && readOn.size >= limits.connections) {
      oldest.destroy()
      // Its `close` event comes later, and others may arrive before.
      readOn.delete(oldest)
    }
    const before = socket.bytesRead
    const end = () => socket.destroy()
    const count = () => {
      if (socket.bytesRead - before > limits.bytes) end()
    }
    const timer = setTimeout(end, limits.ms).unref()
    const stop = () => {
      clearTimeout(timer)
      source.off('data', count)
      socket.off('close', stop)
      readOn.delete(socket)
    }
    readOn.add(socket)
    source.on('data', count)
    source.resume()
    socket.once('close', stop)
    return stop
  }

  return {
    watch(app) {
      app.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
        if (!hasBody(request.headers)) return
        // Runs before Node's listener, which closes the connection.
        response.prependOnceListener('finish', () => {
          if (!request.complete && !request.destroyed) readRest(request)
        })
      })
      // A pipelined request after `Connection: close` gets no answer, so it must not be worked on.
      app.addHook('onRequest', ({ raw: { socket } }, _reply, done) => {
        if (socket.writableEnded) socket.destroy()
        else done()
      })
      app.addHook('preClose', (done) => {
        limits.ms = Math.min(limits.ms, MS_WHILE_STOPPING)
        const answered = [...readOn]
        setTimeout(() => {
          for (const socket of answered) socket.destroy()
        }, limits.ms).unref()
        done()
      })
    },
    endUnreadable(socket, answer) {
      socket.end(answer)
      // The parser would report an error for each chunk.
      socket.removeAllListeners('data')
      discard(socket, socket)
    },
    isReadToItsEnd: (socket) => readOn.has(socket),
  }
}
