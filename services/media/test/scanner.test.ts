import type { ServerResponse } from 'node:http'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { sql } from 'kysely'
import sharp from 'sharp'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { SCAN_QUEUE, type ScanJob, scanJobOf } from '../src/make/jobs/queues.ts'
import { scanSource } from '../src/make/jobs/scan-source.ts'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { idIn, settingsOf, startTestService, type TestService } from './service.ts'

const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

let scanner: Receiver
let open: TestService
let strict: TestService
let widths = 20
/** Bytes that no other test has. */
let bytes: Uint8Array

beforeAll(async () => {
  scanner = await startReceiver()
  const settings = { MEDIA_SCAN_URL: `${scanner.url}/scan?of=clips`, MEDIA_SCAN_SECRET: SECRET }
  const timeLimits = { scanAnswerMs: 2_000 }
  ;[open, strict] = await Promise.all([
    startTestService(settings, { timeLimits }),
    startTestService({ ...settings, MEDIA_SCAN_REQUIRED: 'true' }, { timeLimits }),
  ])
})
afterAll(async () => {
  await Promise.all([open.close(), strict.close()])
  scanner.close()
})
beforeEach(() => {
  scanner.received.length = 0
  answer('ok')
  bytes = gif(widths++, 14, [{ delay: 40 }, { delay: 40 }, { delay: 40 }])
})

const say = (text: string) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(text)

function answer(verdict: string) {
  scanner.answer = say(JSON.stringify({ verdict }))
}

/** Holds the requests of the scanner until it says its verdict. */
function holdAnswers(): { isAsked: () => boolean; say: (verdict: string) => void } {
  const waiting: ServerResponse[] = []
  scanner.answer = (response) => void waiting.push(response)
  return {
    isAsked: () => waiting.length > 0,
    say: (verdict) => {
      answer(verdict)
      for (const response of waiting) say(JSON.stringify({ verdict }))(response)
    },
  }
}

/** A clip whose files are ready and whose scan has begun, as store-renditions.ts leaves it. */
async function scanned(): Promise<string> {
  const { db, pool, queue, now } = open.deps
  const id = idIn(await open.readyAlike(bytes))
  const { rows } = await pool.query('select source_id from clips where id = $1', [id])
  await db.transaction().execute((trx) => queue.send(trx, SCAN_QUEUE.name, scanJobOf({ now }, rows[0].source_id)))
  return id
}

const statusOf = async (service: TestService, id: string, kind = 'mp4') =>
  (await service.get(`/f/${id}.${kind}`)).status
const detailsOf = async (service: TestService, id: string) =>
  (await service.get(`/media/${id}`, { token: service.token })).body.success
const verdictOf = async (service: TestService, id: string) => {
  const find = 'select verdict from sources join clips on source_id = sources.id where clips.id = $1'
  return (await service.deps.pool.query(find, [id])).rows[0]?.verdict
}

/** The next attempt of a scan, which the worker would make in a while. */
async function nextScan(service: TestService, id: string): Promise<ScanJob> {
  const find = sql<{
    data: ScanJob
  }>`select data from media_queue.job where name = 'scan' and (data->>'attempts')::int > 0
    and data->>'sourceId' = (select source_id::text from clips where id = ${id})`
  const job = async () => (await find.execute(service.deps.db)).rows[0]?.data
  await expect.poll(job).toBeDefined()
  return (await job()) as ScanJob
}

const scanAgain = (service: TestService, data: ScanJob) =>
  scanSource(service.deps, { id: 'x', data, retryCount: 0, signal: new AbortController().signal })

test('a new source is sent once, signed, with its poster and three frames', async () => {
  const [first, second] = await Promise.all([open.upload(bytes), open.upload(bytes)])
  await expect.poll(() => verdictOf(open, idIn(first))).toBe('ok')
  await open.upload(bytes)
  expect([await statusOf(open, idIn(first)), await statusOf(open, idIn(second))]).toEqual([200, 200])
  expect(scanner.received).toHaveLength(1)
  const [{ body, headers, path } = { body: '', headers: {}, path: '' }] = scanner.received
  expect(path).toBe('/scan?of=clips')
  const { type, data } = new Webhook(SECRET).verify(body, headers as Record<string, string>) as {
    type: string
    data: { images: { at: number | null; base64: string }[] }
  }
  expect(type).toBe('media.scan')
  expect(data).toMatchObject({
    sha256: (await detailsOf(open, idIn(first))).source.sha256,
    ...{ duration: 1.2, width: widths - 1, height: 14 },
  })
  expect(data.images.map(({ at }) => at)).toEqual([null, 0.3, 0.6, 0.9])
  for (const { base64 } of data.images) {
    expect((await sharp(Buffer.from(base64, 'base64')).metadata()).format).toBe('jpeg')
  }
})

test('`blobs scan` has sources judged that are older than the scanner, once each', async () => {
  const service = await startTestService({ MEDIA_SCAN_URL: scanner.url, MEDIA_SCAN_SECRET: SECRET })
  const ids = [
    idIn(await service.readyAlike(bytes)),
    idIn(await service.readyAlike(gif(widths++, 14, [{ delay: 40 }]))),
  ]
  expect(await verdictOf(service, ids[0] as string)).toBeNull()
  const settings = {
    ...settingsOf(service.deps.config.database.url, service.blobsDir),
    ...{ MEDIA_SCAN_URL: scanner.url, MEDIA_SCAN_SECRET: SECRET },
  }
  expect(await mediaHere(['blobs', 'scan'], settings)).toMatchObject({ code: 0, stdout: '2 sources queued\n' })
  for (const id of ids) await expect.poll(() => verdictOf(service, id)).toBe('ok')
  expect(await mediaHere(['blobs', 'scan'], settings)).toMatchObject({ code: 0, stdout: '0 sources queued\n' })
  expect(scanner.received).toHaveLength(2)
  const without = settingsOf(service.deps.config.database.url, service.blobsDir)
  expect(await mediaHere(['blobs', 'scan'], without)).toMatchObject({
    stderr: expect.stringContaining('MEDIA_SCAN_URL'),
  })
  await service.close()
})

test('a scanner in a private network is asked, and imports cannot reach it', async () => {
  const guarded = await startTestService({
    ...{ MEDIA_SCAN_URL: scanner.url.replace('127.0.0.1', 'localhost'), MEDIA_SCAN_SECRET: SECRET },
    MEDIA_IMPORT_ALLOW_CIDRS: '',
  })
  const id = idIn(await guarded.upload(bytes))
  await expect.poll(() => verdictOf(guarded, id)).toBe('ok')
  scanner.received.length = 0
  for (const source of [scanner.url, guarded.deps.config.moderation.scanner?.url]) {
    expect((await guarded.importFrom({ source })).body.error.code).toBe('source_forbidden')
  }
  expect(scanner.received).toEqual([])
  await guarded.close()
})

describe('a verdict', () => {
  test.for<[string, number, object]>([
    ['nsfw', 200, { state: 'ready', nsfw: true }],
    ['hide', 451, { state: 'hidden', hidden_reason: 'scanner', nsfw: false }],
  ])('%s is about all clips of the bytes, also later ones', async ([verdict, status, details]) => {
    const held = holdAnswers()
    const { token } = await open.newToken()
    const ids = [await scanned(), idIn(await open.upload(bytes, [], { token }))]
    await expect.poll(held.isAsked).toBe(true)
    held.say(verdict)
    await expect.poll(() => verdictOf(open, ids[0] ?? '')).toBe(verdict)
    ids.push(idIn(await open.upload(bytes, [['title', 'Later']])))
    for (const id of ids) expect(await statusOf(open, id)).toBe(status)
    for (const id of [ids[0], ids[2]]) expect(await detailsOf(open, id ?? '')).toMatchObject(details)
    const admin = (await open.newToken({ scopes: ['admin'] })).token
    const { body } = await open.get(`/media/${ids[1]}/moderation`, { token: admin })
    expect(body.success.items).toMatchObject([{ action: verdict, origin: 'scanner', token_id: null }])
  })

  test('block ends all clips of the bytes and refuses these', async () => {
    const held = holdAnswers()
    const ids = [await scanned(), idIn(await open.upload(bytes))]
    await expect.poll(held.isAsked).toBe(true)
    const made = (await open.get(`/f/${ids[0]}.mp4`)).bytes
    held.say('block')
    await expect.poll(() => statusOf(open, ids[0] ?? '')).toBe(410)
    expect(await statusOf(open, ids[1] ?? '')).toBe(410)
    for (const file of [bytes, made]) expect((await open.upload(file)).body.error.code).toBe('blocked_content')
  })

  test('hide hides 8,200 clips, more than one statement can record', async () => {
    const held = holdAnswers()
    const id = await scanned()
    await expect.poll(held.isAsked).toBe(true)
    // Without the triggers, which take most of the time.
    await open.deps.pool.query(`
      set local session_replication_role = 'replica';
      insert into clips (id, source_id, source_kind, created_at)
        select lpad(n::text, 8, '0'), source_id, source_kind, created_at
        from generate_series(1, 8200) n, clips where id = '${id}';`)
    held.say('hide')
    await expect.poll(() => verdictOf(open, id)).toBe('hide')
    const { rows } = await open.deps.pool.query(
      `select count(hidden_at)::int as hidden, count(moderations.id)::int as recorded
        from clips left join moderations on clip_id = clips.id
        where source_id = (select source_id from clips where id = $1)`,
      [id],
    )
    expect(rows).toEqual([{ hidden: 8_201, recorded: 8_201 }])
  })

  test('hide hides clips that are added at the same time, too', async () => {
    const held = holdAnswers()
    const first = await scanned()
    await expect.poll(held.isAsked).toBe(true)
    const uploads = Array.from({ length: 4 }, () => open.upload(bytes))
    held.say('hide')
    const ids = [first, ...(await Promise.all(uploads)).map(idIn)]
    await expect.poll(() => verdictOf(open, first)).toBe('hide')
    for (const id of ids) expect(await statusOf(open, id)).toBe(451)
  })

  test('is overruled by a moderator, also for later clips', async () => {
    answer('hide')
    const id = await scanned()
    await expect.poll(() => statusOf(open, id)).toBe(451)
    const { token } = await open.newToken({ scopes: ['admin'] })
    await open.call('POST', `/media/${id}/moderation`, {
      body: JSON.stringify({ action: 'unhide' }),
      headers: { token, 'content-type': 'application/json' },
    })
    expect(await statusOf(open, id)).toBe(200)
    expect(await statusOf(open, idIn(await open.upload(bytes)))).toBe(200)
  })
})

const endless = (response: ServerResponse, every: number) => {
  response.writeHead(200)
  const timer = setInterval(() => response.write(every ? ' ' : 'x'.repeat(65_536)), every)
  response.on('close', () => clearInterval(timer))
}

const faults: [name: string, answer: Receiver['answer']][] = [
  ['is silent', () => {}],
  ['answers 500', (response) => void response.writeHead(500).end('{"verdict":"block"}')],
  ['redirects', (response) => void response.writeHead(302, { location: '/elsewhere' }).end('{"verdict":"block"}')],
  ['answers no JSON', say('hide')],
  ['answers null', say('null')],
  ['answers an unknown verdict', say('{"verdict":"maybe"}')],
  ['answers without end', (response) => endless(response, 0)],
  ['answers a byte at a time', (response) => endless(response, 100)],
  ['disconnects', (response) => void response.destroy()],
]

describe.for(faults)('while the scanner %s', ([, fault]) => {
  test('clips are published, and scanned later', async () => {
    scanner.answer = fault
    const id = await scanned()
    expect(await statusOf(open, id)).toBe(200)
    const job = await nextScan(open, id)
    expect(job).toMatchObject({ attempts: 1 })
    expect([await verdictOf(open, id), await statusOf(open, id)]).toEqual([null, 200])
    answer('hide')
    await scanAgain(open, job)
    expect(await statusOf(open, id)).toBe(451)
  })
})

describe('with MEDIA_SCAN_REQUIRED=true', () => {
  const later = { prefer: 'respond-async' }

  test('nothing of a clip is shown before the verdict, and its caller waits for it', async () => {
    const held = holdAnswers()
    const waiting = strict.upload(bytes, [], { prefer: 'wait-for=mp4' })
    await expect.poll(held.isAsked).toBe(true)
    const [item] = (await strict.get('/media', { token: strict.token })).body.success.items
    expect(item).toMatchObject({ state: 'processing', sizes: {} })
    for (const kind of ['mp4', 'jpg', 'gif', 'webm']) expect(await statusOf(strict, item.id, kind)).toBe(202)
    expect((await strict.get(`/gif/${item.id}`, { accept: 'text/html' })).text).toContain('Getting the clip ready')
    expect(await detailsOf(strict, item.id)).toMatchObject({ state: 'processing', sizes: {} })
    held.say('ok')
    const { status, headers } = await waiting
    expect([status, headers.get('x-media-state')]).toEqual([201, 'ready'])
    expect(await statusOf(strict, item.id)).toBe(200)
    expect(await detailsOf(strict, item.id)).toMatchObject({ state: 'ready', sizes: { mp4: expect.any(Object) } })
    expect(
      (await strict.deps.pool.query("select from blobs where extension = 'source' and reference_count > 0")).rows,
    ).toEqual([])
  })

  test('a blocked clip is refused to its waiting caller, until a moderator allows its bytes', async () => {
    answer('block')
    const { status, body } = await strict.upload(bytes)
    expect([status, body.error.code]).toEqual([422, 'blocked_content'])
    expect((await strict.upload(bytes)).body.error.code).toBe('blocked_content')
    const find = 'select clip_id as id from blocked_hashes where sha256 = sha256($1)'
    const { rows } = await strict.deps.pool.query(find, [bytes])
    strict.clock.advance({ seconds: 1 })
    const { token } = await strict.newToken({ scopes: ['admin'] })
    const allowed = await strict.call('POST', `/media/${rows[0].id}/moderation`, {
      body: JSON.stringify({ action: 'unblock' }),
      headers: { token, 'content-type': 'application/json' },
    })
    expect(allowed.body.success.items).toMatchObject([{ action: 'unblock' }, { action: 'block', origin: 'scanner' }])
    answer('ok')
    expect((await strict.upload(bytes)).status).toBe(201)
  })

  test('a hidden one is accepted, and shown to its owner as hidden', async () => {
    answer('hide')
    const id = idIn(await strict.upload(bytes))
    expect(await statusOf(strict, id)).toBe(451)
    expect(await detailsOf(strict, id)).toMatchObject({ state: 'hidden', hidden_reason: 'scanner' })
  })

  test('a clip waits for a scanner that is away, and fails after a day', async () => {
    scanner.answer = (response) => void response.writeHead(503).end()
    const id = idIn(await strict.upload(bytes, [], later))
    const job = await nextScan(strict, id)
    strict.clock.advance({ seconds: 86_400 })
    await scanAgain(strict, job)
    expect((await detailsOf(strict, id)).state).toBe('processing')
    strict.clock.advance({ seconds: 1 })
    await scanAgain(strict, job)
    expect(await detailsOf(strict, id)).toMatchObject({ state: 'failed', failure: { code: 'scan_timeout' } })
    expect(await statusOf(strict, id)).toBe(404)
    const { rows } = await strict.deps.pool.query(
      'select from renditions where source_id = (select source_id from clips where id = $1)',
      [id],
    )
    expect(rows).toEqual([])
  })

  test('a clip whose job was lost is scanned after all', async () => {
    const held = holdAnswers()
    const id = idIn(await strict.upload(bytes, [], later))
    await expect.poll(held.isAsked).toBe(true)
    await strict.deps.pool.query("delete from media_queue.job where name = 'scan'")
    held.say('no verdict')
    strict.clock.advance({ seconds: 120 })
    answer('ok')
    await cleanUp(strict.deps)
    await expect.poll(async () => (await detailsOf(strict, id)).state).toBe('ready')
  })

  test('a clip that was deleted meanwhile leaves nothing', async () => {
    scanner.answer = (response) => void response.writeHead(503).end()
    const id = idIn(await strict.upload(bytes, [], later))
    const job = await nextScan(strict, id)
    await strict.call('DELETE', `/media/${id}`, { headers: { token: strict.token } })
    await scanAgain(strict, job)
    const { rows } = await strict.deps.pool.query('select from sources where id = $1', [job.sourceId])
    expect(rows).toEqual([])
  })

  test('clips that are held are published when there is no scanner any more', async () => {
    scanner.answer = (response) => void response.writeHead(503).end()
    const id = idIn(await strict.upload(bytes, [], later))
    await nextScan(strict, id)
    strict.clock.advance({ seconds: 120 })
    const { moderation, ...config } = strict.deps.config
    await cleanUp({ ...strict.deps, config: { ...config, moderation: { ...moderation, scanner: undefined } } })
    expect(await statusOf(strict, id)).toBe(200)
  })
})
