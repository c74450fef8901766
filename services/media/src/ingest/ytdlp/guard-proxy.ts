import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { guardedConnector } from '../remote/guarded-connector.ts'
import type { Resolve } from '../remote/resolve-name.ts'
import type { Guard } from '../remote/ssrf-guard.ts'

export interface ProxyOptions {
  guard: Guard
  resolve: Resolve
  /** Path of a socket to listen on; else a port of loopback. */
  socketPath?: string | undefined
  limits?: Partial<ProxyLimits>
}

export interface ProxyLimits {
  connections: number
  /** Of one run altogether. */
  requests: number
  /** In both directions together. */
  bytes: number
}

/** Looking at a page takes a dozen requests and a few MB of scripts. */
const LIMITS: ProxyLimits = { connections: 32, requests: 300, bytes: 64 * 1024 ** 2 }
const CONNECT_MS = 5_000

export interface GuardProxy {
  /** 0 on a socket path. */
  port: number
  /** The name and password that it wants: other programs of this machine shall not go out through it. */
  credentials: string
  /** Whether the guard said no to anything. */
  hasRefused(): boolean
  close(): void
}

/**
 * A proxy for one program that goes out on its own: every connection passes our guard, at its name, at its addresses and at
 * who answers, as with our own fetches. Knows CONNECT and plain http.
 */
export async function startGuardProxy(options: ProxyOptions): Promise<GuardProxy> {
  const { guard, resolve, socketPath } = options
  const limits = { ...LIMITS, ...options.limits }
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
  /** Only of the far side: what comes from there is what may have no end, and what goes there passes as well. */
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
  /** Throws for an address that the guard refuses before any look-up; rejects for one at the socket. */
  const connectTo = (url: URL) =>
    new Promise<Socket>((done, failed) => {
      const hostname = url.hostname.replace(/^\[|\]$/g, '')
      const port = url.port || (url.protocol === 'https:' ? '443' : '80')
      // As plain http in any case: whether there is TLS inside is between the two ends.
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
      if (url.protocol !== 'http:') throw new Error('TLS is between the ends')
      count(socket)
      const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = incoming.headers
      const outgoing = request({
        createConnection: () => socket,
        ...{ method: incoming.method, path: url.pathname + url.search },
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
