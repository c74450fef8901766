import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { guardedConnector } from '@services/common/egress/guarded-connector'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createRemote, type FetchOptions, type RemoteAnswer, type RemoteOptions } from './fetch-remote.ts'
import { requireOk, requirePlain } from './require-file.ts'
import { withNewFile, writeBody } from './save-body.ts'
import { createSourceGuard } from './source-guard.ts'

const LOOPBACK = { allowCidrs: ['127.0.0.0/8'] }
const forbidden = { code: 'source_forbidden', status: 403 }
const failed = (upstream: string) => ({ code: 'source_fetch_failed', status: 424, details: { upstream } })

let dir: string
let path: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'fetch-remote-'))
  path = join(dir, 'clip')
})
afterEach(() => rm(dir, { recursive: true }))

describe('a good source', () => {
  test('lands in the file with its size, hash and type', async () => {
    const content = Buffer.alloc(300_000, 'gif')
    const site = await serve((_, res) => res.setHeader('content-type', 'Image/GIF; charset=x').end(content))
    const result = await fetchToFile(`${site.url}/a.gif`)
    const sha256 = createHash('sha256').update(content).digest('hex')
    expect(result).toEqual({ bytes: 300_000, sha256, contentType: 'image/gif' })
    expect(await readFile(path)).toEqual(content)
  })

  test('is requested without compression, and redirects are followed to the end', async () => {
    const seen: (string | undefined)[] = []
    const site = await serve((req, res) => {
      seen.push(req.headers['accept-encoding'] as string)
      if (req.url === '/last') return res.end('ok')
      res.writeHead(302, { location: req.url === '/' ? '/next' : 'last' }).end()
    })
    expect(await fetchToFile(site.url)).toMatchObject({
      bytes: 2,
      contentType: undefined,
    })
    expect(seen).toEqual(['identity', 'identity', 'identity'])
  })

  test('exactly at the limit is accepted, one byte more is not', async () => {
    const site = await serve((_, res) => res.end(Buffer.alloc(1000)))
    expect(await fetchToFile(site.url, { maxBytes: 1000 })).toMatchObject({ bytes: 1000 })
    await rm(path)
    await expect(fetchToFile(site.url, { maxBytes: 999 })).rejects.toMatchObject({ code: 'file_too_large' })
  })

  test('may have a name, an odd port and a local host inside an exception', async () => {
    const site = await serve((_, res) => res.end('ok'))
    const resolve = async (name: string) => [{ address: name === 'files' ? '127.0.0.1' : '10.0.0.1', family: 4 }]
    expect(await fetchToFile(`http://files:${site.port}/`, {}, { resolve })).toMatchObject({ bytes: 2 })
  })
})

describe('the guard', () => {
  test.each([
    ['literal', (port: number) => `http://127.0.0.1:${port}/`],
    ['IPv4-mapped', (port: number) => `http://[::ffff:127.0.0.1]:${port}/`],
    ['decimal', (port: number) => `http://2130706433:${port}/`],
    ['octal', (port: number) => `http://0177.0.0.1:${port}/`],
    ['hexadecimal', (port: number) => `http://0x7f000001:${port}/`],
    ['user info', (port: number) => `http://example.com@127.0.0.1:${port}/`],
    ['localhost', (port: number) => `http://localhost:${port}/`],
  ])('never reaches loopback: %s', async (_, url) => {
    const site = await serve((_, res) => res.end('secret'))
    await expect(fetchToFile(url(site.port), {}, { allowCidrs: [] })).rejects.toMatchObject(forbidden)
    expect(site.connections()).toBe(0)
  })

  test.each([
    ['a private address', 'http://10.0.0.1/'],
    ['the metadata service', 'http://169.254.169.254/latest/meta-data/'],
    ['loopback over IPv6', 'http://[::1]/'],
    ['a file', 'file:///etc/passwd'],
    ['another scheme', 'gopher://127.0.0.1:70/'],
    ['credentials', 'http://user:secret@127.0.0.1/'],
  ])('judges a redirect to %s', async (_, location) => {
    const site = await serve((_, res) => res.writeHead(302, { location }).end())
    await expect(fetchToFile(site.url)).rejects.toMatchObject(forbidden)
  })

  test('refuses a name that resolves to a private address, alone or among public ones', async () => {
    const site = await serve((_, res) => res.end('secret'))
    const loopback = { address: '127.0.0.1', family: 4 }
    const elsewhere = { address: '8.8.8.8', family: 4 }
    for (const answers of [[loopback], [elsewhere, loopback], [loopback, elsewhere], []]) {
      const options = { allowCidrs: [], resolve: async () => answers }
      await expect(fetchToFile('http://rebind.example/', {}, options)).rejects.toMatchObject(forbidden)
    }
    expect(site.connections()).toBe(0)
  })

  test('asks the name server once, so a second, different answer cannot be used', async () => {
    const site = await serve((_, res) => res.end('ok'))
    const answers = ['127.0.0.1', '10.0.0.1']
    let lookUps = 0
    const resolve = async () => [{ address: answers[lookUps++] ?? '', family: 4 }]
    expect(await fetchToFile(`http://rebind.example:${site.port}/`, {}, { resolve })).toMatchObject({ bytes: 2 })
    expect(lookUps).toBe(1)
  })

  test('checks the connected peer: an address that changes after the check gets no request', async () => {
    const site = await serve((_, res) => res.end('secret'))
    let reads = 0
    const shifty = { family: 4, address: '' }
    Object.defineProperty(shifty, 'address', { get: () => (reads++ === 0 ? '127.1.1.1' : '127.0.0.1') })
    const options = { allowCidrs: ['127.1.1.1/32'], resolve: async () => [shifty] }
    await expect(fetchToFile(`http://rebind.example:${site.port}/`, {}, options)).rejects.toMatchObject(forbidden)
    expect(site.requests()).toBe(0)
  })

  test('holds at the socket alone, where no URL was judged before', async () => {
    const site = await serve((_, res) => res.end('secret'))
    const connect = guardedConnector(createSourceGuard(), async () => [{ address: '127.0.0.1', family: 4 }], 1000)
    for (const hostname of ['127.0.0.1', '::ffff:127.0.0.1', 'rebind.example']) {
      const target = { hostname, protocol: 'http:', port: String(site.port) }
      const error = await new Promise((done) => connect(target, (...[refusal]) => done(refusal)))
      expect(error).toMatchObject(forbidden)
    }
    expect(site.connections()).toBe(0)
  })

  test('does not let a public name in by an odd port when only loopback is excepted', async () => {
    const resolve = async () => [{ address: '8.8.8.8', family: 4 }]
    await expect(fetchToFile('http://example.com:9999/', {}, { resolve })).rejects.toMatchObject(forbidden)
  })
})

describe('a bad source', () => {
  test.each([
    [404, '4xx'],
    [429, '4xx'],
    [500, '5xx'],
    [503, '5xx'],
    [204, 'bad_response'],
    [206, 'bad_response'],
    [304, 'bad_response'],
  ])('status %i is reported as %s', async (status, upstream) => {
    const site = await serve((_, res) => res.writeHead(status).end())
    await expect(fetchToFile(site.url)).rejects.toMatchObject(failed(upstream))
  })

  test('a redirect loop ends after five hops', async () => {
    const site = await serve((_, res) => res.writeHead(301, { location: '/again' }).end('body nobody reads'))
    await expect(fetchToFile(site.url)).rejects.toMatchObject(failed('too_many_redirects'))
    expect(site.requests()).toBe(6)
  })

  test('a declared length over the limit is refused before the body is read', async () => {
    const site = await serve((_, res) => res.writeHead(200, { 'content-length': 1001 }).flushHeaders())
    await expect(fetchToFile(site.url, { maxBytes: 1000 })).rejects.toMatchObject({
      code: 'file_too_large',
      details: { limit: 1000 },
    })
    await site.allClosed()
  })

  test('an endless body stops at the limit and the connection is cut', async () => {
    const site = await serve((_, res) => {
      const more = () => {
        while (res.write(Buffer.alloc(65_536)));
      }
      res.on('drain', more)
      more()
    })
    await expect(fetchToFile(site.url, { maxBytes: 1_000_000 })).rejects.toMatchObject({ code: 'file_too_large' })
    await site.allClosed()
  })

  test('headers that never come are a timeout', async () => {
    const site = await serve(() => {})
    await expect(fetchToFile(site.url, {}, { timeouts: { headersMs: 100 } })).rejects.toMatchObject(failed('timeout'))
  })

  test('headers that are announced forever are a timeout', async () => {
    const url = await serveSocket((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 20)
      socket.once('close', () => clearInterval(timer))
    })
    const timeouts = { connectMs: 2_000, headersMs: 100, totalMs: 60_000, lowSpeed: NEVER_SLOW }
    const error = await fetchToFile(url, {}, { timeouts }).catch((refusal) => refusal)
    expect(error).toMatchObject({ ...failed('timeout'), cause: 'no final headers in time' })
  })

  test('a body in tiny chunks is given up, however fast they come', async () => {
    const url = await serveSocket((socket) => {
      const crumbs = '1\r\nx\r\n'.repeat(5_000)
      const more = () => {
        while (socket.write(crumbs));
      }
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      socket.on('drain', more)
      more()
    })
    await expect(fetchToFile(url)).rejects.toMatchObject(failed('bad_response'))
  })

  test('a body in small pieces is a body', async () => {
    const pieces = 12_000
    const url = await serveSocket((socket) => {
      const piece = `200\r\n${'x'.repeat(512)}\r\n`
      socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${piece.repeat(pieces)}0\r\n\r\n`)
    })
    expect(await fetchToFile(url)).toMatchObject({ bytes: pieces * 512 })
  })

  test('a body that stalls is a timeout', async () => {
    const site = await serve((_, res) => res.write('GIF89a'))
    await expect(fetchToFile(site.url, {}, { timeouts: { idleMs: 100 } })).rejects.toMatchObject(failed('timeout'))
  })

  test('a dripping body is given up as too slow, although it never stalls', async () => {
    const site = await serve(drip)
    const timeouts = { lowSpeed: { bytesPerSecond: 1000, windowMs: 100, graceMs: 50 } }
    await expect(fetchToFile(site.url, {}, { timeouts })).rejects.toMatchObject(failed('too_slow'))
    await site.allClosed()
  })

  test('nothing takes longer than the total limit, redirects included', async () => {
    const site = await serve(drip)
    await expect(fetchToFile(site.url, {}, { timeouts: { totalMs: 150 } })).rejects.toMatchObject(failed('timeout'))
    await expect(fetchToFile(site.url, { totalMs: 150 })).rejects.toMatchObject(failed('timeout'))
  })

  test('a connection that is cut in the middle is no file', async () => {
    const site = await serve((_, res) => {
      res.writeHead(200, { 'content-length': 5000 }).write(Buffer.alloc(1000), () => res.socket?.destroy())
    })
    await expect(fetchToFile(site.url)).rejects.toMatchObject(failed('interrupted'))
  })

  test('less than the declared length is no file; more is cut at the declared length', async () => {
    const short = await serveRaw('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort')
    await expect(fetchToFile(short)).rejects.toMatchObject(failed('interrupted'))
    const long = await serveRaw('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlong and longer')
    expect(await fetchToFile(long)).toMatchObject({ bytes: 4 })
  })

  test('an answer that is compressed all the same is refused, bombs included', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    const site = await serve((_, res) => res.setHeader('content-encoding', 'gzip').end(bomb))
    await expect(fetchToFile(site.url)).rejects.toMatchObject(failed('bad_response'))
  })

  test('an answer that says in capitals that it is not compressed is plain', async () => {
    const site = await serve((_, res) => res.setHeader('content-encoding', 'Identity').end('GIF89a'))
    expect(await fetchToFile(site.url)).toMatchObject({ bytes: 6 })
  })

  test.each([
    ['no HTTP at all', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\nX-Pad: ${'a'.repeat(20_000)}\r\n\r\n`],
  ])('%s is a bad response', async (_, bytes) => {
    await expect(fetchToFile(await serveRaw(bytes))).rejects.toMatchObject(failed('bad_response'))
  })

  test('a closed port and an unknown name are unreachable', async () => {
    const site = await serve(() => {})
    await site.close()
    await expect(fetchToFile(site.url)).rejects.toMatchObject(failed('unreachable'))
    const resolve = async () => {
      throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' })
    }
    await expect(fetchToFile('http://gone.example/', {}, { resolve })).rejects.toMatchObject(failed('unreachable'))
  })
})

describe('an answer that is read in memory', () => {
  const read = async ({ url, status, next, chunks }: RemoteAnswer) => {
    const parts: Buffer[] = []
    for await (const chunk of chunks) parts.push(chunk)
    return { path: url.pathname, status, next: next?.pathname, text: Buffer.concat(parts).toString() }
  }
  const fetch = (url: string, options: FetchOptions = {}, remote: RemoteOptions = {}) =>
    createTestRemote(remote).fetch(url, options, read)

  test('reports its final address and any status', async () => {
    const site = await serve((req, res) => {
      if (req.url === '/from') return res.writeHead(302, { location: '/to' }).end()
      res.writeHead(404).end('not here')
    })
    const answer = { path: '/to', status: 404, next: undefined, text: 'not here' }
    expect(await fetch(`${site.url}/from`)).toEqual(answer)
  })

  test('is the redirect itself where the caller refuses its target, which gets no request', async () => {
    const site = await serve((_, res) => res.writeHead(302, { location: '/to' }).end('moved'))
    const mayVisit = ({ pathname }: URL) => pathname !== '/to'
    expect(await fetch(`${site.url}/from`, { mayVisit })).toEqual({ path: '/from', status: 302, next: '/to', text: '' })
    expect(site.requests()).toBe(1)
    const inside = await serve((_, res) => res.writeHead(302, { location: 'http://10.0.0.1/' }).end())
    await expect(fetch(inside.url, { mayVisit: () => false })).rejects.toMatchObject(forbidden)
  })

  test('keys and cookies go to the server they are meant for, and not to the next', async () => {
    const seen: (string | undefined)[] = []
    const next = await serve((req, res) => {
      seen.push(req.headers.cookie)
      res.end('ok')
    })
    const first = await serve((req, res) => {
      seen.push(req.headers.cookie)
      res.writeHead(302, { location: req.url === '/' ? '/again' : next.url }).end()
    })
    await fetch(first.url, { ownHeaders: { cookie: 'key=1' } })
    expect(seen).toEqual(['key=1', 'key=1', undefined])
  })

  test('of a form that was sent; after a redirect it is not sent again', async () => {
    const seen: string[] = []
    const site = await serve((req, res) => {
      seen.push(`${req.method} ${req.url} ${req.headers['content-type']}`)
      req.pipe(res.writeHead(req.url === '/moved' ? 307 : 200, { location: '/' }))
    })
    expect(await fetch(site.url, { form: { a: '1 2' } })).toMatchObject({ status: 200, text: 'a=1+2' })
    expect(await fetch(`${site.url}/moved`, { form: { a: '1' } })).toMatchObject({ status: 307, next: '/' })
    const type = 'application/x-www-form-urlencoded'
    expect(seen).toEqual([`POST / ${type}`, `POST /moved ${type}`])
  })

  test('of a host that another address stands in for, on every hop; the guard judges both', async () => {
    const site = await serve((req, res) => {
      if (req.url === '/mirror/a?x=1') return res.writeHead(302, { location: '/b' }).end()
      res.end(req.url)
    })
    const standIns = new Map([['site.example', `${site.url}/mirror`]])
    const answer = await fetch('https://site.example/a?x=1', {}, { standIns })
    expect(answer).toMatchObject({ path: '/b', text: '/mirror/b' })
    await expect(fetch('https://site.example/a', {}, { standIns, allowCidrs: [] })).rejects.toMatchObject(forbidden)
  })

  test('unread bytes are not fetched', async () => {
    const site = await serve((_, res) => res.writeHead(200, { 'content-length': 1e9 }).write('start'))
    expect(await createTestRemote().fetch(site.url, {}, async ({ status }) => status)).toBe(200)
    await site.allClosed()
  })
})

describe('our side', () => {
  test('the caller can stop a transfer, and gets its own reason back', async () => {
    const controller = new AbortController()
    const site = await serve((_, res) => res.write('GIF89a'))
    const arrived = async () => (await stat(path).catch(() => undefined))?.size
    const stopped = expect(fetchToFile(site.url, { signal: controller.signal })).rejects.toThrow('shutting down')
    await expect.poll(arrived).toBe(6)
    controller.abort(new Error('shutting down'))
    await stopped
    await site.allClosed()
  })

  test('the caller can stop while the server is still silent', async () => {
    const controller = new AbortController()
    const site = await serve(() => controller.abort(new Error('shutting down')))
    await expect(fetchToFile(site.url, { signal: controller.signal })).rejects.toThrow('shutting down')
  })

  test('a path that exists is neither written nor removed', async () => {
    const site = await serve((_, res) => res.end('new'))
    await writeFile(path, 'old')
    const fetched = withNewFile(path, (file) =>
      createTestRemote().fetch(site.url, {}, (answer) => writeBody(file, answer, 10)),
    )
    await expect(fetched).rejects.toThrow('EEXIST')
    expect(await readFile(path, 'utf8')).toBe('old')
    expect(site.requests()).toBe(0)
  })
})

function createTestRemote(options: RemoteOptions = {}) {
  const remote = createRemote({ ...LOOPBACK, ...options })
  onTestFinished(() => remote.close())
  return remote
}

/** Fetches a file as imports do, and holds every failure to its promise: no file is left. */
async function fetchToFile(
  url: string,
  { maxBytes = 10_000_000, ...options }: FetchOptions & { maxBytes?: number } = {},
  remote: RemoteOptions = {},
) {
  try {
    return await withNewFile(path, (file) =>
      createTestRemote(remote).fetch(url, options, async (answer) => {
        requireOk(answer)
        requirePlain(answer)
        return writeBody(file, answer, maxBytes)
      }),
    )
  } catch (error) {
    expect(await readdir(dir)).toEqual([])
    throw error
  }
}

const drip: RequestListener = (_, res) => {
  const timer = setInterval(() => res.write('.'), 20)
  res.on('close', () => clearInterval(timer))
}

async function serve(listener: RequestListener) {
  let requests = 0
  let connections = 0
  const open = new Set<Socket>()
  const server = createServer((req, res) => {
    requests++
    listener(req, res)
  })
  server.on('connection', (socket: Socket) => {
    connections++
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  const close = async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(close)
  const { port } = server.address() as AddressInfo
  const allClosed = () => expect.poll(() => open.size).toBe(0)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests: () => requests,
    connections: () => connections,
    allClosed,
    close,
  }
}

const NEVER_SLOW = { bytesPerSecond: 0, windowMs: 60_000, graceMs: 60_000 }

/** Says the same bytes to everyone, HTTP or not, and hangs up. */
const serveRaw = (bytes: string) => serveSocket((socket) => socket.end(bytes))

/** Answers the first words of everyone by hand. */
async function serveSocket(answer: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
