import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { scrambled } from './scrambled.ts'
import { type Answer, createDatabase, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
let site: string
let answer: RequestListener
let visits = 0
const server = createFarServer((request, response) => {
  visits++
  answer(request, response)
})

beforeAll(async () => {
  service = await startTestService({ MEDIA_PARALLEL_PER_TOKEN: '20' })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}/clip.gif`
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await service.close()
})

let widths = 20
const newGif = () => gif(widths++, 10, [{ delay: 10 }])
let keys = 0
const newKey = () => ({ 'idempotency-key': `key ${keys++}` })
const outcome = ({ status, body, headers }: Answer) => [
  status,
  body.error?.code ?? body.success.page,
  headers.get('idempotency-replayed'),
]

test('an upload that is sent again makes one clip, and gets the same answer for a day', async () => {
  const [picture, key] = [newGif(), newKey()]
  const upload = () => service.readyAlike(picture, [['title', 'Once']], key)
  const first = await upload()
  const { clips } = await service.countRows()
  expect(outcome(await upload())).toEqual([201, first.body.success.page, 'true'])
  service.clock.advance({ seconds: 86_400 - 60 })
  const late = await upload()
  expect(outcome(late)).toEqual([201, first.body.success.page, 'true'])
  expect([late.body, late.headers.get('location')]).toEqual([first.body, first.headers.get('location')])
  expect((await service.countRows()).clips).toBe(clips)
  service.clock.advance({ seconds: 61 })
  expect(idIn(await upload())).not.toBe(idIn(first))
})

test('sent many times at once, to several processes, it is one clip', async () => {
  const database = await createDatabase()
  const settings = { MEDIA_DATABASE_URL: database.url, MEDIA_WORKERS_ENABLED: 'false', MEDIA_PARALLEL_PER_TOKEN: '20' }
  const services = await Promise.all([startTestService(settings), startTestService(settings)])
  const [picture, key] = [newGif(), { ...newKey(), token: services[0].token, prefer: 'respond-async' }]
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => (services[n % 2] as TestService).upload(picture, [], key)),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201))
  expect(new Set(answers.map(idIn)).size).toBe(1)
  expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1)
  expect(await services[0].countRows()).toEqual({ clips: 1, sources: 1 })
  for (const each of services) await each.close()
  await database.drop()
})

test('an import that is sent again meanwhile waits for the first one, and its source is fetched once', async () => {
  const picture = newGif()
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  answer = (_request, response) => {
    ask()
    allowed.then(() => response.end(picture))
  }
  const before = visits
  const key = newKey()
  const importing = Array.from({ length: 3 }, () => service.importFrom({ source: site }, key))
  await asked
  allow()
  const answers = await Promise.all(importing)
  expect(new Set(answers.map(idIn)).size).toBe(1)
  expect(visits - before).toBe(1)
})

test('a key that comes with another request is refused; elsewhere it is another key', async () => {
  const [picture, key] = [newGif(), newKey()]
  const first = await service.readyAlike(picture, [['title', 'a']], key)
  for (const other of [
    await service.upload(picture, [['title', 'b']], key),
    await service.upload(newGif(), [['title', 'a']], key),
  ]) {
    expect(outcome(other)).toEqual([409, 'idempotency_conflict', null])
  }
  answer = (_request, response) => response.end(picture)
  const imported = await service.importFrom({ source: site, title: 'a' }, key)
  expect(imported.status).toBe(201)
  const { token } = await service.newToken()
  const stranger = await service.upload(picture, [['title', 'a']], { ...key, token })
  expect(new Set([first, imported, stranger].map(idIn)).size).toBe(3)
})

test('a refusal is remembered, whether it came before or after the clip was accepted', async () => {
  const noClip = newKey()
  const refused = await service.upload(Buffer.from('no clip'), [], noClip)
  expect(outcome(await service.upload(Buffer.from('no clip'), [], noClip))).toEqual(outcome(refused))
  const fetchedNothing = newKey()
  answer = (_request, response) => response.writeHead(404).end()
  const first = await service.importFrom({ source: site }, fetchedNothing)
  answer = (_request, response) => response.end(newGif())
  const before = visits
  const again = await service.importFrom({ source: site }, fetchedNothing)
  expect(outcome(first)).toEqual([424, 'source_fetch_failed', null])
  expect(again.body.error).toEqual({ ...first.body.error, request_id: expect.any(String) })
  expect(visits).toBe(before)

  const noise = scrambled(await readFile(await clip('small.mp4')))
  const broken = newKey()
  const failed = await service.upload(noise, [], broken)
  expect(failed.status).toBe(422)
  const { rows } = await service.deps.pool.query(`select count(*)::int from media_queue.job where name = 'transcode'`)
  expect(outcome(await service.upload(noise, [], broken))).toEqual(outcome(failed))
  const after = await service.deps.pool.query(`select count(*)::int from media_queue.job where name = 'transcode'`)
  expect(after.rows).toEqual(rows)
})

test('a temporary upstream failure is not remembered: the retry with the same key fetches again', async () => {
  const failures: RequestListener[] = [
    (_request, response) => response.writeHead(503).end(),
    (_request, response) => response.writeHead(429).end(),
    (request) => request.socket.destroy(),
    (request, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('GIF89a')
      setImmediate(() => request.socket.destroy())
    },
  ]
  const picture = newGif()
  await service.readyAlike(picture)
  for (const failure of failures) {
    const key = newKey()
    answer = failure
    expect(outcome(await service.importFrom({ source: site }, key))).toEqual([424, 'source_fetch_failed', null])
    answer = (_request, response) => response.end(picture)
    expect(outcome(await service.importFrom({ source: site }, key))).toEqual([201, expect.any(String), null])
  }
})

test('a refusal for load and an internal error are not remembered', async () => {
  const busy = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUEUE_LIMIT: '1', MEDIA_SYNC_WAIT: '0' })
  const [picture, key] = [newGif(), newKey()]
  expect((await busy.upload(newGif())).status).toBe(201)
  expect((await busy.upload(picture, [], key)).status).toBe(503)
  const fail = (code: string) =>
    busy.deps.pool.query(`update sources set state = 'failed', error_code = $1, finished_at = now()`, [code])
  await fail('internal')
  const first = await busy.upload(picture, [], key)
  expect(first.status).toBe(201)
  // The clip failed by an internal error, so that it is made again.
  await fail('internal')
  const second = await busy.upload(picture, [], key)
  expect(outcome(second)).toEqual([201, expect.not.stringContaining(idIn(first)), null])
  await fail('corrupt_media')
  expect(outcome(await busy.upload(picture, [], key))).toEqual([422, 'corrupt_media', null])
  await busy.close()
})

test('a request that learns late of its failed clip does not forget a newer result', async () => {
  const slow = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { pool } = slow.deps
  const [picture, key] = [newGif(), newKey()]
  const late = slow.upload(picture, [], key)
  await expect.poll(async () => (await slow.countRows()).clips).toBe(1)
  // It cannot take its clip back until another one has taken its place.
  const lock = await pool.connect()
  await lock.query('begin; select from clips for update')
  await pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = now()`)
  await expect.poll(() => countLockWaits(pool)).toBe(1)
  const again = () => slow.upload(picture, [], { ...key, prefer: 'respond-async' })
  const second = idIn(await again())
  await lock.query('commit')
  lock.release()
  expect((await late).status).toBe(500)
  expect(outcome(await again())).toEqual([201, expect.stringContaining(second), 'true'])
  await slow.close()
})

test('a process that dies before it accepts the clip remembers nothing; after that it remembers the clip', async () => {
  const crashing = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  const [picture, key] = [newGif(), newKey()]
  const { pool } = crashing.deps
  // The last statement of the transaction fails, as if the connection had ended there.
  await pool.query(`create function fail() returns trigger language plpgsql as 'begin raise exception ''crash''; end'`)
  await pool.query('create trigger crash before insert on idempotency_keys for each row execute function fail()')
  expect((await crashing.upload(picture, [], key)).status).toBe(500)
  expect((await crashing.countRows()).clips).toBe(0)
  await pool.query('drop trigger crash on idempotency_keys')
  const first = await crashing.upload(picture, [], key)
  expect(outcome(first)).toEqual([201, expect.any(String), null])
  // Its clip was taken back, and the process died before it could say so.
  await pool.query('delete from clips')
  expect(outcome(await crashing.upload(picture, [], key))).toEqual([201, expect.any(String), null])
  crashing.clock.advance({ seconds: 3 * 86_400 })
  await cleanUp(crashing.deps)
  expect((await pool.query('select from idempotency_keys')).rowCount).toBe(0)
  await crashing.close()
})

test('a clip that was deleted since is gone for its key too', async () => {
  const [picture, key] = [newGif(), newKey()]
  const first = await service.readyAlike(picture, [], key)
  await service.call('DELETE', `/media/${idIn(first)}`, { headers: { token: service.token } })
  expect(outcome(await service.upload(picture, [], key))).toEqual([410, 'gone', null])
})

test('a client that disconnects leaves no refusal behind', async () => {
  const [key, leave] = [newKey(), new AbortController()]
  answer = () => leave.abort()
  const headers = { ...key, token: service.token, 'content-type': 'application/json' }
  const body = JSON.stringify({ source: site })
  const gone = fetch(`${service.url}/media/import`, { method: 'POST', headers, body, signal: leave.signal })
  await expect(gone).rejects.toThrow()
  answer = (_request, response) => response.end(newGif())
  expect((await service.importFrom({ source: site }, key)).status).toBe(201)
})

test.each(['', 'x'.repeat(256), 'ü'])('the key %j is refused', async (key) => {
  const refused = await service.upload(newGif(), [], { 'idempotency-key': key })
  expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([
    400,
    'invalid_request',
    'Idempotency-Key',
  ])
})

test('include=details answers like GET /media/{id}, and every answer names the version of the API', async () => {
  const { token } = service
  const init = async () => {
    const form = new FormData()
    form.append('title', 'Rich')
    form.append('file', new Blob([new Uint8Array(newGif())]), 'a.gif')
    return { body: form, headers: { token } }
  }
  const added = await service.call('POST', '/media/upload?include=details', await init())
  expect(added.body.success).toMatchObject({ title: 'Rich', state: 'ready', sizes: { gif: expect.anything() } })
  const { body, headers } = await service.get(`/media/${added.body.success.id}`, { token })
  expect(added.body).toEqual(body)
  expect([headers.get('api-version'), added.headers.get('api-version')]).toEqual(['1', '1'])
  const plain = await service.call('POST', '/media/upload', await init())
  expect(Object.keys(plain.body.success)).toEqual(['page', 'files', 'oembed', 'embed', 'meta'])
})
