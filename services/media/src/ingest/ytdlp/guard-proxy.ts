import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { guardedConnector } from '@services/common/egress/guarded-connector'
import type { Resolve } from '@services/common/egress/resolve-name'
import type { Guard } from '@services/common/egress/ssrf-guard'

export interface ProxyOptions {
  guard: Guard
  resolve: Resolve
  /** Path of the listening socket; a port of loopback if absent. */
  socketPath?: string | undefined
  limits?: Partial<typeof LIMITS>
}

/** A page takes a dozen requests and a few MB of scripts. */
const LIMITS = { connections: 32, requests: 300, bytes: 64 * 1024 ** 2 }
const CONNECT_MS = 5_000

export type GuardProxy = Awaited<ReturnType<typeof startGuardProxy>>

/** A proxy (CONNECT, plain http) for one program: the guard checks name, addresses and peer, as in our own fetches. */
export async function startGuardProxy(options: ProxyOptions) {
  const { guard, resolve, socketPath } = options
  const limits = { ...LIMITS, ...options.limits }
  // No other program of this machine may use the proxy.
  const credentials = `ytdlp:${randomBytes(16).toString('hex')}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const connectGuarded = guardedConnector(guard, resolve, CONNECT_MS)
  const sockets = new Set<Duplex>()
  let requests = 0
  let bytes = 0
  let hasRefused = false

  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const track = (socket: Duplex) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }
  /** Counts the bytes that a socket delivers; past the limit every connection ends. */
  const count = (socket: Duplex) => {
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limits.bytes) closeAll()
    })
  }
  const mayPass = ({ headers }: IncomingMessage) => {
    requests++
    return headers['proxy-authorization'] === authorization && requests <= limits.requests
  }
  /** Rejects for an address that the guard refuses at the socket. */
  const connectTo = (url: URL) =>
    new Promise<Socket>((done, failed) => {
      const hostname = url.hostname.replace(/^\[|\]$/g, '')
      const port = url.port || (url.protocol === 'https:' ? '443' : '80')
      // Plain TCP in any case: TLS inside it is between the two ends.
      connectGuarded({ hostname, host: url.host, protocol: 'http:', port }, (error, socket) => {
        if (error) failed(error)
        else done(socket as Socket)
      })
    })
  const open = async (text: string): Promise<{ url: URL; socket: Socket }> => {
    try {
      const url = guard.parseUrl(text)
      const socket = await connectTo(url)
      track(socket)
      return { url, socket }
    } catch (error) {
      if ((error as { code?: unknown }).code === 'source_forbidden') hasRefused = true
      throw error
    }
  }

  const server = createServer(async (incoming: IncomingMessage, response: ServerResponse) => {
    const refuse = (status: number) => response.writeHead(status, { connection: 'close' }).end()
    if (!mayPass(incoming)) return refuse(407)
    try {
      const { url, socket } = await open(incoming.url ?? '')
      if (url.protocol !== 'http:') throw new Error('https needs CONNECT')
      count(socket)
      const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = incoming.headers
      const outgoing = request({
        ...{ createConnection: () => socket, method: incoming.method, path: url.pathname + url.search },
        headers: { ...headers, host: url.host, connection: 'close' },
      })
      outgoing.on('error', () => response.destroy())
      outgoing.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: 'close' })
        answer.on('error', () => response.destroy()).pipe(response)
      })
      incoming.pipe(outgoing)
    } catch {
      refuse(403)
    }
  })
  server.on('connect', async (incoming, client, head) => {
    track(client)
    const refuse = (status: string) =>
      client.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
    if (!mayPass(incoming)) return refuse('407 Proxy Authentication Required')
    try {
      const { socket } = await open(`https://${incoming.url}/`)
      if (client.destroyed) return socket.destroy()
      count(socket)
      count(client)
      client.on('close', () => socket.destroy())
      socket.on('close', () => client.destroy())
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.write(head)
      client.pipe(socket).pipe(client)
    } catch {
      refuse('403 Forbidden')
    }
  })
  server.on('connection', track)
  server.on('clientError', (_error, socket) => socket.destroy())
  server.maxConnections = limits.connections

  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    if (socketPath) server.listen(socketPath, done)
    else server.listen(0, '127.0.0.1', done)
  })
  return {
    port: socketPath ? 0 : (server.address() as AddressInfo).port,
    credentials,
    hasRefused: () => hasRefused,
    close: () => {
      server.close()
      closeAll()
    },
  }
}
