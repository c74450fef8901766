import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OtlpCollector, startCollector } from '@services/common/testing/otlp-collector'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Receiver, startReceiver } from './receiver.ts'
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

/** The trace that begins with this server span, once all `names` are in it. */
async function traceOf(root: string, names: string[]) {
  const spans = () => {
    const traceId = collector.spans().find(({ name, kind }) => kind === 'server' && name === root)?.traceId
    return collector.spans().filter((span) => span.traceId === traceId)
  }
  await expect.poll(() => spans().map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  const byId = new Map(spans().map((span) => [span.spanId, span]))
  const find = (name: string) => spans().find((span) => span.name === name)
  /** Names of the spans from this one up to the request's. */
  const wayTo = (name: string): string[] => {
    const way: string[] = []
    for (let span = find(name); span; span = byId.get(span.parentSpanId ?? '')) way.push(span.name)
    return way
  }
  return { find, wayTo }
}

test('one trace leads from an upload to its SQL, its transcode and the webhook that tells of it', async () => {
  const body = JSON.stringify({ url: `${receiver.url}/secret-path?key=secret` })
  await send('POST', `${service.url}/webhooks`, { body, headers: { token, 'content-type': 'application/json' } })
  const form = await formOf(await clip('plain.mp4'), [['title', 'Stranger words']])
  const { status } = await send('POST', `${service.url}/media/upload`, { body: form, headers: { token } })
  expect(status).toBe(201)

  // A span is exported when it ends, those below it before.
  const jobs = ['process transcode', 'process webhook']
  const { find, wayTo } = await traceOf('POST /media/upload', ['INSERT clips', 'ffprobe', 'ffmpeg', 'POST', ...jobs])
  expect(wayTo('INSERT clips')).toEqual(['INSERT clips', 'POST /media/upload'])
  expect(wayTo('ffprobe')).toEqual(['ffprobe', 'POST /media/upload'])
  expect(wayTo('ffmpeg')).toEqual(['ffmpeg', 'process transcode', 'POST /media/upload'])
  expect(find('ffmpeg')).toMatchObject({
    kind: 'client',
    isFailed: false,
    attributes: { 'process.executable.name': 'ffmpeg', 'process.exit.code': 0 },
  })
  expect(wayTo('POST')).toEqual(['POST', 'process webhook', 'process transcode', 'POST /media/upload'])
  const { traceId, spanId } = find('POST') ?? {}
  expect(receiver.received.map(({ headers }) => headers.traceparent)).toEqual([`00-${traceId}-${spanId}-01`])

  const everything = collector.bodies.join('')
  for (const value of [token, 'Stranger words', 'secret', 'plain.mp4']) expect(everything).not.toContain(value)
})

test('an import asks in a span of its trace, and the site it asks learns nothing of that', async () => {
  receiver.answer = (response) => response.writeHead(200).end(gif(20, 10, [{ delay: 10 }]))
  const caller = '0af7651916cd43dd8448eb211c80319c'
  const { status } = await send('POST', `${service.url}/media/import`, {
    body: JSON.stringify({ source: `${receiver.url}/stranger.gif?key=secret` }),
    headers: { token, 'content-type': 'application/json', traceparent: `00-${caller}-b7ad6b7169203331-01` },
  })
  expect(status).toBe(201)
  const { find, wayTo } = await traceOf('POST /media/import', ['GET', 'ffmpeg'])
  expect(wayTo('GET')).toEqual(['GET', 'POST /media/import'])
  expect(find('GET')?.traceId).toBe(caller)
  const { port } = new URL(receiver.url)
  expect(find('GET')?.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'server.port': Number(port) })
  const headers = receiver.received.flatMap((request) => Object.keys(request.headers))
  for (const name of ['traceparent', 'tracestate', 'baggage']) expect(headers).not.toContain(name)
  expect(collector.bodies.join('')).not.toMatch(/stranger|secret/)
})
