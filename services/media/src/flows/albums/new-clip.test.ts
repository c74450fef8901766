// The field `album` of uploads, imports and tus uploads.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { type Answer, idIn, startTestService, type TestService } from '../../../test/service.ts'

const KNOWN = gif(20, 12, [{ delay: 10 }])
let widths = 20
/** Bytes that the service has not seen. */
const fresh = () => gif(widths++, 13, [{ delay: 10 }])

let service: TestService
let token: string
let upstream: Server
let source: string
let fetched = 0
beforeAll(async () => {
  service = await startTestService({ MEDIA_RATE_LIMIT_READ: '100000' })
  token = service.token
  upstream = createServer((_request, response) => {
    fetched++
    response.setHeader('content-type', 'image/gif')
    response.end(KNOWN)
  })
  await new Promise<void>((resolve) => {
    upstream.listen(0, '127.0.0.1', resolve)
  })
  source = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/a.gif`
  await service.ready(KNOWN)
})
afterAll(async () => {
  upstream.close()
  await service.close()
})

const json = (as = token) => ({ token: as, 'content-type': 'application/json' })

async function newAlbum(as = token): Promise<string> {
  const body = JSON.stringify({ title: 'Trip' })
  return (await service.call('POST', '/albums', { body, headers: json(as) })).body.success.id
}

async function itemsOf(id: string, as = token): Promise<string[]> {
  const { body } = await service.get(`/albums/${id}`, { token: as })
  return body.success.items.map((item: { id: string }) => item.id)
}

const metadata = (album: string) => `album ${Buffer.from(album).toString('base64')}`

async function tus(bytes: Uint8Array, album: string, as = token): Promise<Answer> {
  const headers = { 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream' }
  const fields = { 'upload-length': String(bytes.length), 'upload-metadata': metadata(album) }
  return service.call('POST', '/tus', {
    body: new Uint8Array(bytes),
    headers: { token: as, ...headers, ...fields },
  })
}

const importForm = (fields: Record<string, string>) =>
  service.call('POST', '/media/import', { body: new URLSearchParams(fields), headers: { token } })

const WAYS: [string, (album: string) => Promise<Answer>][] = [
  ['upload', (album) => service.upload(KNOWN, [['album', album]])],
  ['import as JSON', (album) => service.importFrom({ source, album })],
  ['import as a form', (album) => importForm({ source, album })],
  ['import by GET', (album) => service.get(`/media/import?${new URLSearchParams({ source, album })}`, { token })],
  ['tus upload', (album) => tus(KNOWN, album)],
]

test.for(WAYS)('an %s of known bytes joins an album', async ([, add]) => {
  const id = await newAlbum()
  const [one, other] = [idIn(await add(id)), idIn(await add(id))]
  expect(await itemsOf(id)).toEqual([one, other])
})

test('an upload of new bytes joins an album, of several at once each', async () => {
  const id = await newAlbum()
  const answers = await Promise.all([1, 2, 3].map(() => service.upload(fresh(), [['album', id]])))
  expect((await itemsOf(id)).sort()).toEqual(answers.map(idIn).sort())
})

test('two uploads of the same new bytes at once both join', async () => {
  const [id, bytes] = [await newAlbum(), fresh()]
  const answers = await Promise.all([1, 2].map(() => service.upload(bytes, [['album', id]])))
  expect((await itemsOf(id)).sort()).toEqual(answers.map(idIn).sort())
})

test.for(WAYS)('an %s is refused for an album that is not its own, before anything is taken', async ([, add]) => {
  const { token: other } = await service.newToken()
  const foreign = await newAlbum(other)
  const before = await service.countRows()
  fetched = 0
  for (const album of [foreign, 'zzzzzzzz', 'no id']) {
    const { status, body } = await add(album)
    expect([album, status, body.error.code, body.error.param]).toEqual([album, 422, 'invalid_field', 'album'])
    expect(body.error.message).toBe('album must be the id of one of your albums.')
  }
  expect(await service.countRows()).toEqual(before)
  expect(fetched).toBe(0)
  expect(await itemsOf(foreign, other)).toEqual([])
  const { rows } = await service.deps.pool.query('select from resumable_uploads where clip_id is null')
  expect(rows).toEqual([])
})

test('an upload whose field comes after the file is refused too', async () => {
  const form = new FormData()
  form.append('file', new Blob([new Uint8Array(KNOWN)]), 'a.gif')
  form.append('album', 'zzzzzzzz')
  const { status, body } = await service.call('POST', '/media/upload', { body: form, headers: { token } })
  expect([status, body.error.code]).toEqual([422, 'invalid_field'])
})

test.for(WAYS)('an %s into a full album is refused', async ([, add]) => {
  const id = await newAlbum()
  const model = idIn(await service.ready(KNOWN))
  await service.deps.pool.query(
    `with clip as (
       insert into clips (id, token_id, source_id, source_kind, created_at)
       select substr(md5(random()::text || n), 1, 8), token_id, source_id, 'upload', now()
       from clips, generate_series(1, 499) n where id = $1 returning id)
     insert into album_items (album_id, clip_id, position, added_at) select $2, id, 1, now() from clip`,
    [model, id],
  )
  const answers = [await add(id), await add(id)]
  expect(answers.map(({ status, body }) => [status, body.error?.code])).toEqual([
    [201, undefined],
    [422, 'album_full'],
  ])
})

test('of uploads at once into an album that lacks one clip, one is accepted, and no other leaves a clip', async () => {
  const id = await newAlbum()
  const model = idIn(await service.ready(KNOWN))
  await service.deps.pool.query(
    `with clip as (
       insert into clips (id, token_id, source_id, source_kind, created_at)
       select substr(md5(random()::text || n), 1, 8), token_id, source_id, 'upload', now()
       from clips, generate_series(1, 499) n where id = $1 returning id)
     insert into album_items (album_id, clip_id, position, added_at) select $2, id, 1, now() from clip`,
    [model, id],
  )
  const before = await service.countRows()
  const answers = await Promise.all([1, 2, 3].map(() => service.upload(KNOWN, [['album', id]])))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422])
  expect((await service.countRows()).clips).toBe(before.clips + 1)
})

test('a repeat with the same Idempotency-Key has the first clip, even without its album; another album is a conflict', async () => {
  const [id, other] = [await newAlbum(), await newAlbum()]
  const headers = { 'idempotency-key': 'with-album' }
  const first = await service.upload(KNOWN, [['album', id]], headers)
  expect((await service.upload(KNOWN, [['album', other]], headers)).body.error.code).toBe('idempotency_conflict')
  await service.call('DELETE', `/albums/${id}`, { headers: { token } })
  const repeat = await service.upload(KNOWN, [['album', id]], headers)
  expect([repeat.status, idIn(repeat)]).toEqual([201, idIn(first)])
})

test('an empty field is none, and an upload without a token has no album', async () => {
  expect((await service.upload(KNOWN, [['album', ' ']])).status).toBe(201)
  expect((await service.importFrom({ source, album: null })).status).toBe(201)
  const open = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional', MEDIA_WORKERS_ENABLED: 'false' })
  const form = new FormData()
  form.append('album', 'zzzzzzzz')
  form.append('file', new Blob([new Uint8Array(KNOWN)]), 'a.gif')
  const { status, body } = await open.call('POST', '/media/upload', { body: form })
  expect([status, body.error.message]).toEqual([422, 'album needs a token.'])
  await open.close()
})
