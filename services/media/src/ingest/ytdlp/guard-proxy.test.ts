import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { resolveName } from '@services/common/egress/resolve-name'
import type { GuardOptions } from '@services/common/egress/ssrf-guard'
import { expect, onTestFinished, test } from 'vitest'
import { createSourceGuard } from '../remote/source-guard.ts'
import { type ProxyOptions, startGuardProxy } from './guard-proxy.ts'

const LOOPBACK = { allowCidrs: ['127.0.0.1/32'] }

async function start({
  guard = LOOPBACK,
  ...options
}: { guard?: GuardOptions } & Partial<Omit<ProxyOptions, 'guard'>> = {}) {
  const proxy = await startGuardProxy({ guard: createSourceGuard(guard), resolve: resolveName, ...options })
  onTestFinished(proxy.close)
  return proxy
}

type Proxy = Awaited<ReturnType<typeof start>>

/** The status and the body of the answer, or `closed`. */
function ask(proxy: Proxy, path: string, { method = 'GET', credentials = proxy.credentials } = {}) {
  const headers = { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
  return new Promise<{ status?: number | undefined; text: string }>((resolve) => {
    const client = request({ host: '127.0.0.1', port: proxy.port, method, path, headers })
    client.on('connect', (answer, socket) => {
      socket.destroy()
      resolve({ status: answer.statusCode, text: '' })
    })
    client.on('response', async (answer) => {
      let text = ''
      try {
        for await (const chunk of answer) text += chunk
        resolve({ status: answer.statusCode, text })
      } catch {
        resolve({ text: 'closed' })
      }
    })
    client.on('error', () => resolve({ text: 'closed' })).end()
  })
}

async function serve(body: string | Buffer = 'hello') {
  const seen: unknown[] = []
  const server = createServer((incoming, response) => {
    seen.push([incoming.method, incoming.url, incoming.headers['proxy-authorization']])
    response.end(body)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { target: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

test('a request is passed on, without what was meant for the proxy', async () => {
  const { target, seen } = await serve()
  expect(await ask(await start(), `http://${target}/a?b`)).toEqual({ status: 200, text: 'hello' })
  expect(seen).toEqual([['GET', '/a?b', undefined]])
})

test('a request without the password is refused', async () => {
  const { target, seen } = await serve()
  const proxy = await start()
  expect(await ask(proxy, `http://${target}/`, { credentials: 'ytdlp:guess' })).toMatchObject({ status: 407 })
  expect(await ask(proxy, target, { credentials: '', method: 'CONNECT' })).toMatchObject({ status: 407 })
  expect(seen).toEqual([])
})

test.each(['169.254.169.254:80', '[::1]:80', '127.0.0.2:80', '10.0.0.1:443', '0x7f.2:80'])(
  'the guard refuses %s both ways',
  async (target) => {
    const proxy = await start()
    expect(await ask(proxy, `http://${target}/`)).toMatchObject({ status: 403 })
    expect(await ask(proxy, target, { method: 'CONNECT' })).toMatchObject({ status: 403 })
    expect(proxy.hasRefused()).toBe(true)
  },
)

test.each(['file:///etc/passwd', 'ftp://127.0.0.1/', '/', 'https://127.0.0.1/'])('%s is no request', async (path) => {
  expect((await ask(await start(), path)).status).not.toBe(200)
})

test('a name is refused when any of its addresses is', async () => {
  const canary = createTcpServer(() => expect.unreachable()).listen(0, '127.0.0.1')
  onTestFinished(() => void canary.close())
  await once(canary, 'listening')
  const { port } = canary.address() as AddressInfo
  const resolve = async () => [
    { address: '127.0.0.1', family: 4 },
    { address: '127.0.0.2', family: 4 },
  ]
  expect(await ask(await start({ resolve }), `two.example:${port}`, { method: 'CONNECT' })).toMatchObject({
    status: 403,
  })
})

test('more bytes or more requests than a page can need end it', async () => {
  const { target } = await serve(Buffer.alloc(200_000))
  const small = await start({ limits: { bytes: 100_000 } })
  expect(await ask(small, `http://${target}/`)).toEqual({ text: 'closed' })
  const few = await start({ limits: { requests: 1 } })
  expect(await ask(few, `http://${target}/`)).toMatchObject({ status: 200 })
  expect(await ask(few, `http://${target}/`)).toMatchObject({ status: 407 })
})
