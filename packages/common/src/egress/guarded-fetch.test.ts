import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createFarServer } from '../testing/http/far-server.ts'
import { PATIENCE_MS } from '../testing/patience.ts'
import type { EgressOptions } from './egress.ts'
import { openEgress } from './open-egress.ts'

const LOOPBACK = ['127.0.0.0/8']
const BOUNDS = { timeoutMs: PATIENCE_MS, maxBytes: 1000 }
const refused = { code: 'egress_refused' }

function open(options: Partial<EgressOptions> = {}) {
  const egress = openEgress({ userAgent: 'service/1', requiresTls: true, ports: 'any', ...options })
  onTestFinished(() => egress.close())
  return egress
}

async function serve(listener: RequestListener) {
  const server = createFarServer(listener)
  let connections = 0
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, connections: () => connections }
}

async function serveSocket(answer: (socket: Socket) => void) {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const at = (...addresses: string[]) => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

test('a request reaches a network of the operator, and its whole answer comes back', async () => {
  const seen: unknown[] = []
  const { url } = await serve(async (request, response) => {
    const body = (await request.toArray()).join('')
    const { 'user-agent': agent, 'accept-encoding': encoding, authorization } = request.headers
    seen.push(request.method, agent, encoding, authorization, body)
    response.writeHead(201, { 'set-cookie': ['a=1', 'b=2'], 'content-type': 'application/json' }).end('{"a":1}')
  })
  const request = { method: 'POST', headers: { authorization: 'Bearer x' }, body: new URLSearchParams({ a: 'b c' }) }
  const answer = await open({ allowCidrs: LOOPBACK }).fetch(url, request, BOUNDS)
  expect(seen).toEqual(['POST', 'service/1', 'identity', 'Bearer x', 'a=b+c'])
  expect(answer.status).toBe(201)
  expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(await answer.json()).toEqual({ a: 1 })
})

test.each([
  ['literal', '127.0.0.1'],
  ['decimal', '2130706433'],
  ['octal', '0177.0.0.1'],
  ['hexadecimal', '0x7f000001'],
  ['short', '127.1'],
  ['IPv4-mapped', '[::ffff:127.0.0.1]'],
  ['IPv6', '[::1]'],
  ['localhost', 'localhost'],
  ['a name of this machine', 'a.localhost'],
])('without an exception loopback is never reached: %s', async (_, host) => {
  const site = await serve((_request, response) => response.end())
  for (const scheme of ['http', 'https']) {
    const url = `${scheme}://${host}:${site.port}/`
    await expect(open().fetch(url, {}, BOUNDS)).rejects.toMatchObject(refused)
    await expect(open().check(url)).rejects.toMatchObject(refused)
  }
  expect(site.connections()).toBe(0)
})

test('a name is refused by any private address, and an exception does not open others', async () => {
  const site = await serve((_request, response) => response.end())
  for (const addresses of [at('127.0.0.1'), at('8.8.8.8', '10.0.0.1'), at('::ffff:169.254.169.254'), []]) {
    const egress = open({ allowCidrs: ['192.168.0.0/16'], resolve: async () => addresses })
    const url = `https://login.example.com:${site.port}/`
    await expect(egress.check(url)).rejects.toMatchObject(refused)
    await expect(egress.fetch(url, {}, BOUNDS)).rejects.toMatchObject(refused)
  }
  expect(site.connections()).toBe(0)
})

test('a name server that changes its answer after the check is asked again, and judged again', async () => {
  const site = await serve((_request, response) => response.end())
  const answers = [at('8.8.8.8'), at('127.0.0.1')]
  const egress = open({ resolve: async () => answers.shift() ?? [] })
  const url = `https://rebind.example:${site.port}/`
  expect((await egress.check(url)).host).toBe(`rebind.example:${site.port}`)
  await expect(egress.fetch(url, {}, BOUNDS)).rejects.toMatchObject(refused)
  expect(site.connections()).toBe(0)
})

test('a look-up that fails keeps its code', async () => {
  const resolve = () => Promise.reject(Object.assign(new Error('queryA'), { code: 'ENOTFOUND' }))
  await expect(open({ resolve }).check('https://gone.example/')).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test('a redirect is an answer: its target gets no request', async () => {
  const target = await serve((_request, response) => response.end('secret'))
  const site = await serve((_request, response) => response.writeHead(302, { location: target.url }).end())
  const answer = await open({ allowCidrs: LOOPBACK }).fetch(site.url, {}, BOUNDS)
  expect([answer.status, await answer.text()]).toEqual([302, ''])
  expect(target.connections()).toBe(0)
})

test('a server that never answers, or only announces an answer, is a timeout', async () => {
  const silent = await serve(() => {})
  const early = await serveSocket((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 20)
    socket.once('close', () => clearInterval(timer))
  })
  const egress = open({ allowCidrs: LOOPBACK })
  for (const url of [silent.url, early]) {
    await expect(egress.fetch(url, {}, { ...BOUNDS, timeoutMs: 100 })).rejects.toMatchObject({ name: 'TimeoutError' })
  }
})

test('an answer is read up to its limit, and nothing compressed is unpacked', async () => {
  const egress = open({ allowCidrs: LOOPBACK })
  const endless = await serve((_request, response) => {
    const more = () => {
      while (response.write(Buffer.alloc(65_536)));
    }
    response.on('drain', more)
    more()
  })
  await expect(egress.fetch(endless.url, {}, BOUNDS)).rejects.toMatchObject({ name: 'AnswerTooLarge' })
  const crumbs = await serveSocket((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const more = () => {
      while (socket.write('1\r\nx\r\n'.repeat(5_000)));
    }
    socket.on('drain', more)
    more()
  })
  await expect(egress.fetch(crumbs, {}, { ...BOUNDS, maxBytes: 10_000_000 })).rejects.toThrow('crumbs')
  const packed = await serve((_request, response) => response.setHeader('content-encoding', 'gzip').end('x'))
  await expect(egress.fetch(packed.url, {}, BOUNDS)).rejects.toThrow('compressed')
})

test('a host that hangs takes its own slots only, and a caller that leaves frees one', async () => {
  let waiting = 0
  const hanging = await serve(() => waiting++)
  const fine = await serve((_request, response) => response.end('ok'))
  const egress = open({ allowCidrs: LOOPBACK })
  const leaving = new AbortController()
  const held = Array.from({ length: 144 }, () => egress.fetch(hanging.url, { signal: leaving.signal }, BOUNDS))
  const ended = Promise.allSettled(held)
  await expect.poll(() => waiting).toBe(16)
  await expect(egress.fetch(hanging.url, {}, BOUNDS)).rejects.toThrow('too many requests')
  expect(await (await egress.fetch(fine.url, {}, BOUNDS)).text()).toBe('ok')
  leaving.abort(new Error('left'))
  expect((await ended).every(({ status }) => status === 'rejected')).toBe(true)
  const again = new AbortController()
  const next = egress.fetch(hanging.url, { signal: again.signal }, BOUNDS)
  await expect.poll(() => waiting).toBe(17)
  again.abort(new Error('left'))
  await expect(next).rejects.toThrow('left')
})
