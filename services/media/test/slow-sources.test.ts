import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, expect } from 'vitest'
import { apiError } from '../src/errors.ts'
import { clip } from './clips.ts'
import { startTestService, type TestService, test } from './service.ts'

/** Answers that have begun and never end, with a byte now and then so that they do not stall. */
const endless = new Set<ServerResponse>()
let site: string
/** Whole files. */
let served = 0
const server = createFarServer(async (request, response) => {
  if (request.url !== '/slow') return response.end(await readFile(await clip('plain.gif')), () => served++)
  endless.add(response)
  const drip = setInterval(() => response.write('GIF89a'), 100)
  response.once('close', () => {
    clearInterval(drip)
    endless.delete(response)
  })
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const temporary = async (service: TestService) => (await service.listFiles()).filter((path) => path.startsWith('work/'))

/** Imports that never end by themselves; `leave` disconnects the clients. */
function importSlowly(service: TestService, token: string, count: number) {
  const gone = new AbortController()
  const init = {
    method: 'POST',
    body: JSON.stringify({ source: `${site}/slow` }),
    headers: { token, 'content-type': 'application/json' },
    signal: gone.signal,
  }
  const answers = Array.from({ length: count }, () => fetch(`${service.url}/media/import`, init).catch(() => undefined))
  return { answers, leave: () => gone.abort() }
}

test('an import whose client disconnects ends at once: connection, temporary file and slot', async ({ service }) => {
  const before = await service.countRows()
  const slow = importSlowly(service, service.token, 12)
  await expect.poll(() => endless.size).toBeGreaterThan(0)
  await expect.poll(() => temporary(service)).not.toEqual([])
  slow.leave()
  await expect.poll(() => endless.size).toBe(0)
  await expect.poll(() => temporary(service)).toEqual([])
  expect((await service.importFrom({ source: `${site}/clip.gif` })).status).toBe(201)
  expect(await service.countRows()).toEqual({ clips: before.clips + 1, sources: 1 })
})

test('an import whose client disconnects between its last byte and its acceptance becomes no clip', async ({
  service,
}) => {
  const { deps, app } = service
  const before = await service.countRows()
  const sha256 = createHash('sha256').update(await readFile(await clip('plain.gif')))
  // Another holder of the same bytes keeps the mutex.
  const { promise: isOver, resolve: goOn } = Promise.withResolvers<void>()
  const other = deps.mutex.run(sha256.digest('hex'), () => isOver)
  const connected = once(app.server, 'connection')
  const servedBefore = served
  const body = JSON.stringify({ source: `${site}/clip.gif` })
  const client = connect(Number(new URL(service.url).port), '127.0.0.1')
  client.write(
    `POST /media/import HTTP/1.1\r\nHost: a\r\nToken: ${service.token}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  )
  const [connection] = await connected
  await expect.poll(() => served).toBe(servedBefore + 1)
  await expect.poll(() => deps.downloads.taken().used).toBe(0)
  expect(await temporary(service)).toHaveLength(1)
  client.destroy()
  await once(connection, 'close')
  goOn()
  await other
  await expect.poll(() => temporary(service)).toEqual([])
  expect(await service.countRows()).toEqual(before)
})

test('slow sources of one token leave capacity for the imports of another', async ({ service }) => {
  const slow = importSlowly(service, service.token, 12)
  await expect.poll(() => endless.size).toBe(4)
  const { token } = await service.newToken()
  expect((await service.importFrom({ source: `${site}/clip.gif` }, { token })).status).toBe(201)
  expect(endless.size).toBe(4)
  slow.leave()
  await Promise.all(slow.answers)
  await expect.poll(() => temporary(service)).toEqual([])
})

test('imports beyond the waiting limit of the downloads get Retry-After and do not count against the rate limit', async () => {
  const service = await startTestService({
    MEDIA_PARALLEL_PER_TOKEN: '1',
    MEDIA_RATE_LIMIT_IMPORT: '6/1h',
    MEDIA_WORKERS_ENABLED: 'false',
  })
  // One at work, four waiting.
  const slow = importSlowly(service, service.token, 6)
  const refused = await Promise.race(slow.answers)
  expect([refused?.status, await refused?.json()]).toMatchObject([429, { error: { code: 'queue_full' } }])
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  slow.leave()
  await Promise.all(slow.answers)
  await expect.poll(() => service.deps.downloads.taken()).toEqual({ used: 0, waiting: 0 })
  const later = { prefer: 'respond-async' }
  expect((await service.importFrom({ source: `${site}/clip.gif` }, later)).status).toBe(201)
  expect((await service.importFrom({ source: `${site}/clip.gif` }, later)).status).toBe(429)
  await service.close()
})

test('a stopping service ends an import that would delay the stop', async () => {
  const forceStop = new AbortController()
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' }, { forceStop: forceStop.signal })
  const slow = importSlowly(service, service.token, 1)
  await expect.poll(() => endless.size).toBeGreaterThan(0)
  await expect.poll(() => temporary(service)).toHaveLength(1)
  forceStop.abort(apiError('unavailable', { retryAfterSeconds: 1 }))
  const [answer] = await Promise.all(slow.answers)
  expect([answer?.status, answer?.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await temporary(service)).toEqual([])
  await service.close()
})
