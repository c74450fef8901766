import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createMediaClient, MediaError } from './media-client.ts'

interface Seen {
  method: string | undefined
  path: string | undefined
  key: string | undefined
  token: string | undefined
  at: number
}

type Step = (request: IncomingMessage, response: ServerResponse) => void

/** Starts a server that answers the nth request with the nth step, and all later ones with the last. */
async function serve(...steps: Step[]) {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const { method, url: path, headers } = request
    const key = headers['idempotency-key'] as string | undefined
    seen.push({ method, path, key, token: headers.token as string | undefined, at: performance.now() })
    const step = steps[Math.min(seen.length, steps.length) - 1]
    // Only a request that has arrived is answered, or refused its answer.
    request.resume().on('end', () => step?.(request, response))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

const RESULT = { page: 'https://media.example/gif/aB3dE9xK', files: {}, oembed: '', embed: '', meta: {} }

const added: Step = (_request, response) => {
  response.writeHead(201, { 'content-type': 'application/json', 'x-media-state': 'ready' })
  response.end(JSON.stringify({ success: RESULT }))
}
const refuse =
  (status: number, code: string, headers: Record<string, string> = {}): Step =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify({ error: { code, message: code, request_id: 'r-1', details: { limit: 1 } } }))
  }
const hangUp: Step = (request) => request.socket.destroy()

/** Ends each pause between two attempts as soon as it begins. */
function skipPauses() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }).setTimerTickMode('nextTimerAsync')
  onTestFinished(() => void vi.useRealTimers())
}

const file = new Blob(['GIF89a'])
const failureOf = (call: Promise<unknown>): Promise<MediaError> =>
  call.then(
    () => expect.unreachable(),
    (error) => error,
  )

test('429 and 503 are retried after their Retry-After, with one idempotency key', async () => {
  const { url, seen } = await serve(
    refuse(429, 'rate_limited', { 'retry-after': '1' }),
    refuse(503, 'unavailable', { 'retry-after': '0' }),
    added,
  )
  const clip = await createMediaClient({ baseUrl: url, token: 'mh_1' }).upload(file)
  expect(clip).toMatchObject({ id: 'aB3dE9xK', state: 'ready', isReplay: false })
  expect(seen.map(({ method, path, token }) => [method, path, token])).toEqual(
    Array(3).fill(['POST', '/media/upload', 'mh_1']),
  )
  expect(new Set(seen.map(({ key }) => key)).size).toBe(1)
  expect(seen[0]?.key).toMatch(/^[0-9a-f]{32}$/)
  expect(Number(seen[1]?.at) - Number(seen[0]?.at)).toBeGreaterThan(900)
})

test('each call has a key of its own', async () => {
  const { url, seen } = await serve(added)
  const client = createMediaClient({ baseUrl: url, token: 'mh_1' })
  await Promise.all([client.upload(file), client.upload(file), client.import('https://example.com/a.gif')])
  expect(new Set(seen.map(({ key }) => key)).size).toBe(3)
})

test.each([400, 401, 403, 404, 409, 410, 413, 415, 422, 424, 500, 504, 507])('%i is never retried', async (status) => {
  const { url, seen } = await serve(refuse(status, 'invalid_field'))
  const failure = await failureOf(createMediaClient({ baseUrl: url, token: 'mh_1' }).upload(file))
  expect(failure).toBeInstanceOf(MediaError)
  expect(failure).toMatchObject({ code: 'invalid_field', status, details: { limit: 1 }, requestId: 'r-1' })
  expect(seen).toHaveLength(1)
})

test('a Retry-After of more than a minute is for the caller, and a page of a proxy is no answer of the service', async () => {
  const later = await serve(refuse(429, 'daily_bytes_exceeded', { 'retry-after': '3600' }))
  const failure = await failureOf(createMediaClient({ baseUrl: later.url, token: 'mh_1' }).get('aB3dE9xK'))
  expect(failure).toMatchObject({ code: 'daily_bytes_exceeded', retryAfterSeconds: 3600 })
  expect(later.seen).toHaveLength(1)
  const proxy = await serve((_request, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'))
  const answer = await failureOf(createMediaClient({ baseUrl: proxy.url }).get('aB3dE9xK'))
  expect(answer).toMatchObject({ code: 'unexpected_answer', status: 502 })
})

test('a lost answer is requested again: five attempts at most, and none that could add a second clip', async () => {
  skipPauses()
  const { url, seen } = await serve(hangUp, added)
  await createMediaClient({ baseUrl: url, token: 'mh_1' }).upload(file)
  expect(seen.map(({ key }) => key)).toEqual([seen[0]?.key, seen[0]?.key])

  const anonymous = await serve(hangUp, added)
  expect(await failureOf(createMediaClient({ baseUrl: anonymous.url }).upload(file))).toMatchObject({
    code: 'network_error',
    status: 0,
  })
  expect(anonymous.seen).toHaveLength(1)

  const dead = await serve(hangUp)
  expect(await failureOf(createMediaClient({ baseUrl: dead.url }).get('a'))).toMatchObject({ code: 'network_error' })
  expect(dead.seen).toHaveLength(5)
})

test('a deletion whose answer was lost is done when the clip is gone; one that finds it gone is refused', async () => {
  skipPauses()
  const lost = await serve(hangUp, refuse(410, 'gone'))
  await createMediaClient({ baseUrl: lost.url, token: 'mh_1' }).delete('aB3dE9xK')
  const gone = await serve(refuse(410, 'gone'))
  expect(await failureOf(createMediaClient({ baseUrl: gone.url, token: 'mh_1' }).delete('a'))).toMatchObject({
    code: 'gone',
  })
})

test('an abort ends a call while it waits for its next attempt, and throws its reason', async () => {
  const { url, seen } = await serve(refuse(503, 'unavailable', { 'retry-after': '60' }))
  const abort = new AbortController()
  const call = failureOf(createMediaClient({ baseUrl: url }).get('a', { signal: abort.signal }))
  await expect.poll(() => seen.length).toBe(1)
  const reason = new Error('left')
  abort.abort(reason)
  expect(await call).toBe(reason)
})

test('an upload in pieces that does not get further, or loses its headers on the way, ends', async () => {
  const begun: Step = (_request, response) => response.writeHead(201, { location: '/tus/a' }).end()
  for (const headers of [{ 'upload-offset': '0' }, {}]) {
    const { url, seen } = await serve(begun, (_request, response) => response.writeHead(204, headers).end())
    const upload = createMediaClient({ baseUrl: url, token: 'mh_1' }).upload(file, { resumable: true })
    expect(await failureOf(upload)).toMatchObject({ code: 'unexpected_answer' })
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'PATCH'])
  }
})

test('the token does not follow a redirect to another host', async () => {
  skipPauses()
  const other = await serve(added)
  const { url } = await serve((_request, response) => response.writeHead(307, { location: other.url }).end())
  const failure = await failureOf(createMediaClient({ baseUrl: url, token: 'mh_1' }).upload(file))
  expect(failure).toMatchObject({ code: 'network_error' })
  expect(other.seen).toEqual([])
})
