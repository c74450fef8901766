// Posters that owners choose: made by a job, shown by one clip alone, under addresses that caches may keep.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip } from '../../../test/clips.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'
import { cleanUp } from '../../housekeeping.ts'
import { makeVariantOfSource } from '../../make/jobs/add-variant.ts'
import { VARIANTS_QUEUE } from '../../make/jobs/queues.ts'

let service: TestService
let file: string
beforeAll(async () => {
  service = await startTestService({ MEDIA_RATE_LIMIT_READ: '10000/1m' })
  file = await clip('low.mp4')
})
afterAll(() => service.close())

const newClip = async (fields: [string, string][] = [], token = service.token) =>
  idIn(await service.ready(file, fields, { token }))
const change = (id: string, poster_at: unknown, token = service.token) =>
  service.call('PATCH', `/media/${id}`, {
    headers: { token, 'content-type': 'application/json' },
    body: JSON.stringify({ poster_at }),
  })
const detailsOf = async (id: string) => (await service.get(`/media/${id}`, { token: service.token })).body.success
const posterOf = async (id: string) => (await detailsOf(id)).poster
const made = async (id: string, at: number | null, number: number) =>
  expect.poll(() => posterOf(id)).toEqual({ at, number })
const jpg = (id: string, search = '') => service.get(`/f/${id}.jpg${search}`)
const query = (text: string, values: unknown[] = []) => service.deps.pool.query(text, values)

describe('a chosen poster', () => {
  test('has its own address, and its sizes, thumbhash, page and details follow', async () => {
    const id = await newClip()
    const [before, first] = [await detailsOf(id), await jpg(id)]
    expect(first.headers.get('cache-control')).toContain('immutable')
    const small = await service.get(`/f/${id}/w320.webp`)
    const answer = await change(id, 1.1)
    expect([answer.status, answer.body.success.poster.change]).toEqual([200, { at: 1.1, state: 'making' }])
    await made(id, 1.1, 1)
    const [after, plain, named] = [await detailsOf(id), await jpg(id), await jpg(id, '?p=1')]
    expect(after.files.jpg).toBe(`${before.files.jpg}?p=1`)
    expect(after.sizes.jpg).toMatchObject({ bytes: plain.bytes.length, width: before.sizes.jpg.width })
    expect(plain.headers.get('etag')).toBe(`"${after.sizes.jpg.sha256}"`)
    expect(plain.bytes.equals(first.bytes)).toBe(false)
    expect(named.bytes.equals(plain.bytes)).toBe(true)
    expect(plain.headers.get('cache-control')).toBe('public, max-age=300')
    expect(named.headers.get('cache-control')).toMatch(/max-age=31536000, immutable/)
    const smallAfter = await service.get(`/f/${id}/w320.webp?p=1`)
    expect([smallAfter.status, smallAfter.bytes.equals(small.bytes)]).toEqual([200, false])
    expect(smallAfter.headers.get('cache-control')).toContain('immutable')
    const page = await service.get(`/gif/${id}`)
    expect(page.text).toContain(`/f/${id}.jpg?p=1`)
    expect((await service.get(`/oembed/${id}`)).body.thumbnail_url).toBe(after.files.jpg)
    expect((await change(id, null)).body.success.poster).toEqual({ at: null, number: 2 })
    expect((await jpg(id)).bytes.equals(first.bytes)).toBe(true)
    expect((await query(`select from variants where name like 'poster-%'`)).rowCount).toBe(0)
  })

  test('is that of one clip, not of others with the same bytes, and stays when nothing asks for it', async () => {
    const [id, other] = [await newClip(), await newClip()]
    const before = await jpg(other)
    await change(id, 0.6)
    await made(id, 0.6, 1)
    expect((await jpg(other)).bytes.equals(before.bytes)).toBe(true)
    expect(await posterOf(other)).toEqual({ at: null, number: 0 })
    await change(other, 0.6)
    await made(other, 0.6, 1)
    await change(id, null)
    expect((await query(`select from variants where name = 'poster-t0.6.jpg' and state = 'stored'`)).rowCount).toBe(1)
    await query(`update variants set used_at = '2000-01-01'`)
    await cleanUp(service.deps)
    expect((await jpg(other)).bytes.equals(before.bytes)).toBe(false)
    await service.call('DELETE', `/media/${other}`, { headers: { token: service.token } })
    expect((await jpg(other)).status).toBe(410)
  })

  test('is the last of several that are asked for', async () => {
    const id = await newClip()
    const answers = await Promise.all([0.2, 0.4, 0.8].map((at) => change(id, at)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const { rows } = await query('select poster_wanted from clips where id = $1', [id])
    const wanted = rows[0].poster_wanted ?? (await posterOf(id)).at
    await expect.poll(async () => (await posterOf(id)).at).toBe(wanted)
    expect((await posterOf(id)).change).toBeUndefined()
  })
})

test('a poster beyond the clip, of a clip that is not ready, or of another token is refused', async () => {
  const id = await newClip()
  const refused = async (at: unknown) => {
    const { status, body } = await change(id, at)
    return [status, body.error?.code]
  }
  expect(await refused(1.4)).toEqual([422, 'edit_out_of_range'])
  expect(await refused(-1)).toEqual([422, 'invalid_field'])
  expect(await refused('x')).toEqual([422, 'invalid_field'])
  expect((await change(id, 1, (await service.newToken()).token)).status).toBe(404)
  await query(`update sources set state = 'processing' where id = (select source_id from clips where id = $1)`, [id])
  expect(await refused(1)).toEqual([422, 'invalid_field'])
  await query(`update sources set state = 'ready' where id = (select source_id from clips where id = $1)`, [id])
})

test('a poster that cannot be made leaves the old one, and its owner sees that; so does one whose job was lost', async () => {
  const own = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await own.ready(file))
  const headers = { token: own.token, 'content-type': 'application/json' }
  const ask = (at: number) => own.call('PATCH', `/media/${id}`, { headers, body: JSON.stringify({ poster_at: at }) })
  const poster = async () => (await own.get(`/media/${id}`, { token: own.token })).body.success.poster
  const old = await own.get(`/f/${id}.jpg`)
  await ask(0.3)
  const { rows } = await own.deps.pool.query(`select data from media_queue.job where name = 'variants'`)
  const broken = { ...own.deps, tools: { ...own.deps.tools, ffmpeg: { ...own.deps.tools.ffmpeg, path: '/bin/false' } } }
  const job = { id: 'x', data: rows[0].data, signal: new AbortController().signal }
  await expect(makeVariantOfSource(broken, { ...job, retryCount: 0 })).rejects.toThrow()
  expect((await poster()).change).toEqual({ at: 0.3, state: 'making' })
  await makeVariantOfSource(broken, { ...job, retryCount: VARIANTS_QUEUE.retryLimit })
  expect(await poster()).toEqual({ at: null, number: 0, change: { at: 0.3, state: 'failed' } })
  expect((await own.get(`/f/${id}.jpg`)).bytes.equals(old.bytes)).toBe(true)
  await own.deps.pool.query(`delete from media_queue.job where name = 'variants'`)
  await ask(0.5)
  await own.deps.pool.query(`delete from media_queue.job where name = 'variants'`)
  own.clock.advance({ seconds: 61 })
  await cleanUp(own.deps)
  expect((await poster()).change).toEqual({ at: 0.5, state: 'failed' })
  await own.close()
})
