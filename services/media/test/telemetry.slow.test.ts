import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { readMetricsTable, readScrape } from '@services/common/testing/telemetry/metrics-table'
import pg from 'pg'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, createDatabase, formOf, send, settingsOf } from './service.ts'
import { eventually, type ServiceProcess, startServe } from './service-process.ts'

const token = 'a-first-token-of-20-characters'
let database: Awaited<ReturnType<typeof createDatabase>>
let directory: string
let receiver: Receiver
let service: ServiceProcess | undefined

beforeEach(async () => {
  ;[database, directory, receiver] = await Promise.all([
    createDatabase(),
    mkdtemp(join(tmpdir(), 'media-telemetry-')),
    startReceiver(),
  ])
})
afterEach(async () => {
  if (service && service.child.exitCode === null && service.child.signalCode === null) {
    service.child.kill('SIGKILL')
    await service.ended
  }
  service = undefined
  receiver.close()
  await database.drop()
  await rm(directory, { recursive: true, force: true })
})

/** The service as a process of its own, which is the only way telemetry is switched on. */
async function serve(settings: Record<string, string> = {}) {
  const port = await findFreePort()
  const started = await startServe({
    ...settingsOf(database.url, directory),
    MEDIA_BOOTSTRAP_TOKEN: token,
    MEDIA_METRICS_ENABLED: 'true',
    MEDIA_METRICS_EXPORTER: 'prometheus',
    MEDIA_OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    MEDIA_OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    ...settings,
  })
  service = started
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/`)).text()
  return { url: started.url, scrape, read: async (series: string) => readingOf(await scrape(), series) }
}

const readingOf = (figures: string, series: string) => {
  const line = figures.split('\n').find((candidate) => candidate.startsWith(series))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

const codeOf = ({ status, body }: Answer) => body?.error?.code ?? status

/** Uses everything that is counted; no label contains a text of a caller. */
async function useEverything(base: string) {
  const json = { token, 'content-type': 'application/json' }
  const post = (path: string, body: unknown) => send('POST', base + path, { body: JSON.stringify(body), headers: json })
  const upload = async (file: Uint8Array | string) =>
    codeOf(
      await send('POST', `${base}/media/upload`, {
        body: await formOf(file, [['title', 'Stranger words']]),
        headers: { token },
      }),
    )
  const importFrom = async (source: string) => codeOf(await post('/media/import', { source }))
  const small = gif(20, 10, [{ delay: 10 }])
  const other = gif(21, 10, [{ delay: 10 }])
  receiver.answer = (response, { path }) => {
    if (path.startsWith('/clip.gif')) response.writeHead(200).end(other)
    else if (path === '/no') response.writeHead(410).end()
    else response.writeHead(204).end()
  }
  for (const path of ['/yes', '/no']) expect(codeOf(await post('/webhooks', { url: receiver.url + path }))).toBe(201)
  expect(await upload(small)).toBe(201)
  expect(await upload(small)).toBe(201)
  const [{ id }] = (await send('GET', `${base}/media`, { headers: { token } })).body.success.items
  const report = { reason: 'spam', text: 'Stranger words', email: 'stranger@example.com' }
  expect(codeOf(await post(`/gif/${id}/report`, report))).toBe(202)
  expect(codeOf(await post(`/media/${id}/moderation`, { action: 'nsfw', note: 'Stranger' }))).toBe(200)
  expect(await upload(Buffer.from('stranger bytes'))).toBe('unsupported_media_type')
  expect(await upload(await clip('long.mp4'))).toBe('duration_exceeded')
  expect(await importFrom(`${receiver.url}/clip.gif?stranger=1`)).toBe(201)
  expect(await importFrom(`${receiver.url}/stranger`)).toBe('source_fetch_failed')
  expect(await importFrom('https://gfycat.com/strangerclip')).toBe('site_gone')
  const piece = await readFile(await clip('tiny.mp4'))
  const tus = { token, 'tus-resumable': '1.0.0', 'upload-length': String(piece.length) }
  const headers = { ...tus, 'content-type': 'application/offset+octet-stream' }
  const whole = await send('POST', `${base}/tus`, { body: new Uint8Array(piece), headers })
  expect(codeOf(whole)).toBe(201)
  const frame = new URL(whole.body.success.files.jpg).pathname.replace('.jpg', '/t0.jpg')
  expect(codeOf(await send('GET', base + frame))).toBe(200)
  // A 5xx, whatever it says.
  const asOther = `${base}/oembed?url=${encodeURIComponent(whole.body.success.page)}&format=stranger`
  expect(codeOf(await send('GET', asOther))).toBe('format_not_supported')
}

test('Prometheus scrapes every documented metric, no other, and nothing that a caller wrote', async () => {
  // No standby, so its lag is not a number.
  const { url, scrape, read } = await serve({ MEDIA_DATABASE_REPLICA_URL: database.url })
  expect(await read('media_clips_total{source="upload",result="ready"')).toBe(0)
  await useEverything(url)
  for (const result of ['delivered', 'failed']) {
    const isCounted = async () => ((await read(`media_webhook_deliveries_total{result="${result}"`)) ?? 0) > 0
    await eventually(isCounted, true)
  }
  const expected = [
    ['media_clips_total{source="upload",result="ready"', 1],
    ['media_clips_total{source="upload",result="shared"', 1],
    ['media_clips_total{source="import",result="ready"', 1],
    ['media_clips_total{source="tus",result="ready"', 1],
    ['media_copied_total{file="mp4",reason="bit_rate"', 1],
    ['media_variants_total{file="jpg",result="stored"', 1],
    ['media_probe_refusals_total{code="unsupported_media_type"', 1],
    ['media_probe_refusals_total{code="duration_exceeded"', 1],
    ['media_imports_total{site="other",result="ok"', 1],
    ['media_imports_total{site="other",result="source_fetch_failed"', 1],
    ['media_imports_total{site="gfycat",result="site_gone"', 1],
    ['media_bytes_in_total{source="import"', gif(21, 10, [{ delay: 10 }]).length],
    ['media_bytes_in_total{source="tus"', (await readFile(await clip('tiny.mp4'))).length],
    ['media_transcode_duration_count{input="gif",result="ready"', 2],
    ['media_transcode_duration_count{input="mp4",result="ready"', 1],
    ['media_reports_total{reason="spam"', 1],
    ['media_moderations_total{action="nsfw",origin="admin"', 1],
    ['media_scans_total{result="failed"', 0],
    ['media_slots{kind="upload",state="used"', 0],
    ['media_queue_jobs{queue="transcode",state="waiting"', 0],
    ['media_queue_dead{queue="webhook"', 0],
  ] as const
  let figures = ''
  const readings = async () => {
    figures = await scrape()
    return expected.map(([series]) => [series, readingOf(figures, series)])
  }
  // A clip is counted a moment after its files are there and its upload is answered.
  await eventually(readings, expected)
  for (const positive of [
    'media_disk_free{directory="work"',
    'media_disk_free{directory="blobs"',
    'media_disk_size{directory="work"',
    'process_memory_usage',
  ]) {
    expect(readingOf(figures, positive)).toBeGreaterThan(1_000_000)
  }
  const reference = await readFile(new URL('../../../docs/reference/media/metrics.md', import.meta.url), 'utf8')
  expect(readScrape(figures)).toEqual(readMetricsTable(reference))
  expect(figures).not.toMatch(/stranger/i)
  service?.child.kill('SIGTERM')
  expect(await service?.ended).toBe(0)
})

test('jobs without a worker show as waiting, with their age', async () => {
  const { url, read } = await serve({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  const body = await formOf(gif(22, 10, [{ delay: 10 }]))
  expect((await send('POST', `${url}/media/upload`, { body, headers: { token } })).status).toBe(201)
  // Not known where the database takes too long to say.
  await eventually(() => read('media_queue_jobs{queue="transcode",state="waiting"'), 1)
  expect(await read('media_queue_oldest_age{queue="transcode",state="waiting"')).toBeGreaterThan(0)
  expect(await read('media_queue_oldest_age{queue="transcode",state="retrying"')).toBe(0)
})

test('while the database is unavailable a scrape reports everything but the queues, and a stop is not delayed', async () => {
  const { scrape } = await serve()
  await eventually(async () => readingOf(await scrape(), 'media_queue_jobs'), 0)
  const admin = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await admin.connect()
  const name = new URL(database.url).pathname.slice(1)
  await admin.query(`alter database "${name}" allow_connections false`)
  await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  await admin.end()
  const figures = await scrape()
  expect(figures).toContain('\nprocess_memory_usage')
  expect(figures).toContain('\nmedia_disk_free')
  expect(readingOf(figures, 'media_queue_jobs')).toBeNaN()
  service?.child.kill('SIGTERM')
  // The process ends by itself, after any log lines about its database.
  expect(await service?.ended).toEqual(expect.any(Number))
})
