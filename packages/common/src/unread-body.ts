// Requests answered before their body has arrived: a refused token, a body that is too large. The one rule: closing a connection
// with unread bytes in it resets it, and the reset may cost the client the answer (RFC 9112, 9.6), so the rest is read first.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { hasBody } from './http-shell.ts'

/** Bounds on reading a body after its answer. */
export interface UnreadBodyBounds {
  /** From the answer to the end of the connection; nginx lingers as long. */
  ms: number
  /** Largest body that is read to its end; more than the largest upload by default. */
  bytes: number
  /** Connections that are read on at once; one more ends the oldest of them. */
  connections: number
}

const BOUNDS: UnreadBodyBounds = { ms: 30_000, bytes: 256 * 1024 ** 2, connections: 256 }

/** The same while the service stops, which answered clients must not hold up. */
const MS_WHILE_STOPPING = 1_000

export interface UnreadBodies {
  /**
   * Reads on, within bounds, what comes of a body after the answer and throws it away. A connection that ends with the answer is
   * closed for writing at once and for reading after the body: HTTP/1.0 and `Connection: close` get their answers too.
   */
  watch(app: FastifyInstance): void
  /** Says the last words on a connection whose bytes are no HTTP, and reads on as after any other answer. */
  endUnreadable(socket: Socket, answer: string): void
  /** True once a connection is only read to its end: there is nothing to be said on it any more. */
  isReadToItsEnd(socket: Socket): boolean
}

/** Watches one server. */
export function openUnreadBodies(bounds: Partial<UnreadBodyBounds> = {}): UnreadBodies {
  const limits = { ...BOUNDS, ...bounds }
  /** Oldest answer first. */
  const readOn = new Set<Socket>()

  function readRest(request: IncomingMessage): void {
    const { socket } = request
    const { destroySoon } = socket
    // Node calls this next where the answer ends the connection.
    socket.destroySoon = () => void socket.end()
    // A form's parser that stopped reading must not go on buffering.
    request.unpipe()
    const stop = discard(request, socket)
    request.once('end', () => {
      stop()
      socket.destroySoon = destroySoon
      if (socket.writableEnded) socket.destroySoon()
    })
  }

  /**
   * Takes what comes until it is too much, or too late. The returned function ends the watch. `source` is the request where there
   * is one: Node does not read on from a socket that its parser paused and others listen to.
   */
  function discard(source: Readable, socket: Socket): () => void {
    const [oldest] = readOn
    if (oldest && readOn.size >= limits.connections) {
      oldest.destroy()
      // It ends a moment later, and others may come in that.
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
        // Ahead of Node's own listener, which closes the connection.
        response.prependOnceListener('finish', () => {
          if (!request.complete && !request.destroyed) readRest(request)
        })
      })
      // Clients may send requests ahead. After `Connection: close` none is answered, so none may be worked on either.
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
      // The parser would complain about each piece.
      socket.removeAllListeners('data')
      discard(socket, socket)
    },
    isReadToItsEnd: (socket) => readOn.has(socket),
  }
}
