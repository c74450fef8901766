import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ApiError } from '../errors.ts'
import { sayAllThenListen } from '../testing/http/raw-http.ts'
import { PATIENCE_MS } from '../testing/patience.ts'
import { openUnreadBodies, type UnreadBodyBounds } from './drain-body.ts'
import type { ErrorAnswers } from './error-answers.ts'
import { installErrorHandler } from './error-handler.ts'
import { answerClientErrors } from './parser-errors.ts'

const answers: ErrorAnswers = {
  common: (failure, _detail, cause) => new ApiError(failure, 400, failure, { cause }),
  form: ({ code }) => ({ body: { code } }),
}

/** Starts a server that refuses POST before reading its body. */
async function refusingServer(bounds: Partial<UnreadBodyBounds> = {}): Promise<{ app: FastifyInstance; port: number }> {
  const unreadBodies = openUnreadBodies(bounds)
  const app = Fastify({ clientErrorHandler: answerClientErrors(answers, unreadBodies), bodyLimit: 1_000_000 })
  installErrorHandler(app, answers)
  unreadBodies.watch(app)
  const refuse = async () => {
    throw new ApiError('refused', 401, 'refused', {})
  }
  app.post('/refused', { onRequest: refuse }, () => {})
  // Late enough for the body to fill every buffer.
  app.post('/refused-late', { onRequest: () => setTimeout(100).then(refuse) }, () => {})
  app.post('/read', async () => 'read')
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => app.close())
  return { app, port: Number(port) }
}

async function read(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  socket.resume()
  if (!socket.destroyed) await once(socket, 'close')
  return text
}

const LARGE = Buffer.alloc(24_000_000)

/** Clients whose connection ends with the answer. */
const ways = [
  ['of HTTP/1.0', 'POST /refused HTTP/1.0\r\n'],
  [
    'that says Connection: close and is refused late',
    'POST /refused-late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n',
  ],
  ['that says Connection: close', 'POST /refused HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'],
] as const

describe.each(ways)('a client %s', (_, line) => {
  test('gets the whole refusal of a large body and may send the body to its end', async () => {
    const { port } = await refusingServer()
    const head = `${line}Content-Length: ${LARGE.length}\r\n\r\n`
    const { text, failures } = await sayAllThenListen(port, head, LARGE)
    expect(failures).toEqual([])
    expect(text).toMatch(/^HTTP\/1\.1 401 [\s\S]*{"code":"refused"}$/)
  })
})

test('a body refused for its length does not cost the client the answer', async () => {
  const { port } = await refusingServer()
  const head = `POST /read HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${LARGE.length}\r\n\r\n`
  const { text, failures } = await sayAllThenListen(port, head, LARGE)
  expect(failures).toEqual([])
  expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*{"code":"body_too_large"}$/)
})

test('bytes that are no HTTP are answered, however many follow them', async () => {
  const { port } = await refusingServer()
  const { text, failures } = await sayAllThenListen(port, 'what is this\r\n\r\n', LARGE)
  expect(failures).toEqual([])
  expect(text).toMatch(/^HTTP\/1\.1 400 [\s\S]*{"code":"invalid_request"}$/)
})

test('a kept connection serves requests after a refused body', async () => {
  const { port } = await refusingServer()
  const socket = connect(port, '127.0.0.1')
  socket.write(`POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: ${LARGE.length}\r\n\r\n`)
  await once(socket, 'data')
  socket.write(LARGE)
  socket.write('POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  expect(await read(socket)).toMatch(/^HTTP\/1\.1 200 [\s\S]*read$/)
})

test('a pipelined request after a refusal that ends the connection is not handled', async () => {
  const { port } = await refusingServer()
  // Its length ends the connection, not a header of the client.
  const head = 'POST /read HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n'
  const socket = connect(port, '127.0.0.1')
  socket.write(head)
  await once(socket, 'data')
  socket.write(Buffer.alloc(2_000_000))
  socket.write('POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n')
  expect(await read(socket)).toBe('')
})

describe('a client that ends neither its body nor its connection is disconnected', () => {
  const ENDLESS = 'POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'
  const piece = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536), Buffer.from('\r\n')])

  /** A connection that has its refusal. */
  function beginEndless(port: number): Socket {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.write(ENDLESS)
    return socket
  }

  async function openEndless(port: number): Promise<Socket> {
    const socket = beginEndless(port)
    await once(socket, 'data')
    return socket
  }

  const countOpen =
    ({ server }: FastifyInstance) =>
    () =>
      new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))

  test('after some time', async () => {
    const { app, port } = await refusingServer({ ms: 300 })
    await openEndless(port)
    await expect.poll(countOpen(app), { timeout: PATIENCE_MS }).toBe(0)
  })

  test('after some bytes', async () => {
    const { app, port } = await refusingServer({ ms: 3_600_000, bytes: 10_000_000 })
    const socket = await openEndless(port)
    for (let sent = 0; sent < 9_000_000; sent += piece.length) {
      await new Promise((resolve) => socket.write(piece, resolve))
    }
    expect(await countOpen(app)()).toBe(1)
    const sendOn = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', sendOn)
    sendOn()
    await expect.poll(countOpen(app), { timeout: PATIENCE_MS }).toBe(0)
  })

  test('when too many connections are read, the oldest first', async () => {
    const { app, port } = await refusingServer({ ms: 3_600_000, connections: 3 })
    const clients: Socket[] = []
    for (let n = 0; n < 5; n++) clients.push(await openEndless(port))
    await expect.poll(countOpen(app), { timeout: PATIENCE_MS }).toBe(3)
    // A closed connection refuses writes.
    for (const socket of clients.slice(0, 2)) {
      while (!socket.destroyed) await new Promise((resolve) => socket.write(piece, resolve))
    }
    expect(await countOpen(app)()).toBe(3)
  })

  test('however many arrive in the same moment', async () => {
    const arrived: Socket[] = []
    const server = createServer((socket) => arrived.push(socket.on('error', () => {})))
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    for (let n = 0; n < 5; n++) beginEndless(port)
    await expect.poll(() => arrived.length).toBe(5)
    const { endUnreadable, isReadToItsEnd } = openUnreadBodies({ ms: 3_600_000, connections: 2 })
    for (const socket of arrived) endUnreadable(socket, 'bye')
    expect(arrived.map(isReadToItsEnd)).toEqual([false, false, false, true, true])
    expect(arrived.map(({ destroyed }) => destroyed)).toEqual([true, true, true, false, false])
  })

  test('soon, when the service stops', async () => {
    const { app, port } = await refusingServer({ ms: 3_600_000 })
    await openEndless(port)
    await app.close()
    expect(app.server.listening).toBe(false)
  })
})
