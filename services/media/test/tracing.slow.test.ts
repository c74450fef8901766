import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { type OtlpCollector, startCollector, traceOf } from '@services/common/testing/telemetry/otlp-collector'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { createDatabase, formOf, send, settingsOf } from './service.ts'
import { type ServiceProcess, startServe } from './service-process.ts'

const token = 'a-first-token-of-20-characters'
let database: Awaited<ReturnType<typeof createDatabase>>
let directory: string
let receiver: Receiver
let collector: OtlpCollector
let service: ServiceProcess

beforeEach(async () => {
  ;[database, directory, receiver, collector] = await Promise.all([
    createDatabase(),
    mkdtemp(join(tmpdir(), 'media-tracing-')),
    startReceiver(),
    startCollector(),
  ])
  service = await startServe({
    ...settingsOf(database.url, directory),
    MEDIA_BOOTSTRAP_TOKEN: token,
    MEDIA_TRACING_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  })
})
afterEach(async () => {
  service.child.kill('SIGKILL')
  await service.ended
  receiver.close()
  collector.close()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

test('one trace leads from an upload to its SQL, its transcode and the webhook that reports it', async () => {
  const body = JSON.stringify({ url: `${receiver.url}/secret-path?key=secret` })
  await send('POST', `${service.url}/webhooks`, { body, headers: { token, 'content-type': 'application/json' } })
  const form = await formOf(await clip('plain.mp4'), [['title', 'Stranger words']])
  const { status } = await send('POST', `${service.url}/media/upload`, { body: form, headers: { token } })
  expect(status).toBe(201)

  // A span is exported when it ends, those below it before.
  const jobs = ['process transcode', 'process webhook']
  const { find, wayTo } = await traceOf(collector, 'POST /media/upload', [
    'INSERT clips',
    'ffprobe',
    'ffmpeg',
    'POST',
    ...jobs,
  ])
  expect(wayTo('INSERT clips')).toEqual(['INSERT clips', 'POST /media/upload'])
  expect(wayTo('ffprobe')).toEqual(['ffprobe', 'POST /media/upload'])
  expect(wayTo('ffmpeg')).toEqual(['ffmpeg', 'process transcode', 'POST /media/upload'])
  expect(find('ffmpeg')).toMatchObject({
    kind: 'client',
    isFailed: false,
    attributes: { 'process.executable.name': 'ffmpeg', 'process.exit.code': 0 },
  })
  expect(wayTo('POST')).toEqual(['POST', 'process webhook', 'process transcode', 'POST /media/upload'])

  const everything = collector.bodies.join('')
  for (const value of [token, 'Stranger words', 'secret', 'plain.mp4']) expect(everything).not.toContain(value)
})

test('receivers of two tokens whose clips are of the same bytes learn of no trace, so of no other token either', async () => {
  const ask = async (path: string, body: object, as: string) => {
    const init = { body: JSON.stringify(body), headers: { token: as, 'content-type': 'application/json' } }
    return (await send('POST', service.url + path, init)).body.success
  }
  const { token: other } = await ask('/tokens', { name: 'second' }, token)
  for (const [path, as] of Object.entries({ '/first': token, '/second': other }))
    await ask('/webhooks', { url: receiver.url + path }, as)
  const path = await clip('plain.mp4')
  await Promise.all(
    [token, other].map(async (as) =>
      send('POST', `${service.url}/media/upload`, { body: await formOf(path), headers: { token: as } }),
    ),
  )
  await expect.poll(() => receiver.received.map((event) => event.path).sort()).toEqual(['/first', '/second'])
  for (const { headers } of receiver.received)
    for (const name of ['traceparent', 'tracestate', 'baggage']) expect(headers).not.toHaveProperty(name)
})

test('requests of an import are spans of its trace, and the site learns nothing of it', async () => {
  receiver.answer = (response) => response.writeHead(200).end(gif(20, 10, [{ delay: 10 }]))
  const caller = '0af7651916cd43dd8448eb211c80319c'
  const { status } = await send('POST', `${service.url}/media/import`, {
    body: JSON.stringify({ source: `${receiver.url}/stranger.gif?key=secret` }),
    headers: { token, 'content-type': 'application/json', traceparent: `00-${caller}-b7ad6b7169203331-01` },
  })
  expect(status).toBe(201)
  const { find, wayTo } = await traceOf(collector, 'POST /media/import', ['GET', 'ffmpeg'])
  expect(wayTo('GET')).toEqual(['GET', 'POST /media/import'])
  expect(find('GET')?.traceId).toBe(caller)
  const { port } = new URL(receiver.url)
  expect(find('GET')?.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'server.port': Number(port) })
  const headers = receiver.received.flatMap((request) => Object.keys(request.headers))
  for (const name of ['traceparent', 'tracestate', 'baggage']) expect(headers).not.toContain(name)
  expect(collector.bodies.join('')).not.toMatch(/stranger|secret/)
})
