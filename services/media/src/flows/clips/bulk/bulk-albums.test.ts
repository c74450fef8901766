// Many clips put into an album, by the limits of albums.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { addClips } from '../testing/many-clips.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '100000' })
})
afterAll(() => service.close())

const send = (path: string, body: object, token = service.token) =>
  service.call('POST', path, { headers: { token, 'content-type': 'application/json' }, body: JSON.stringify(body) })
const newAlbum = async (token = service.token): Promise<string> =>
  (await send('/albums', { title: 'Trip' }, token)).body.success.id
const bulk = (ids: readonly string[], album: string, token = service.token) =>
  send('/media/bulk', { ids, action: 'album', album }, token)
const itemsOf = async (album: string): Promise<string[]> =>
  (
    await service.deps.pool.query('select clip_id from album_items where album_id = $1 order by position', [album])
  ).rows.map(({ clip_id: id }) => id)
const allOk = (ids: readonly string[]) => ids.map((id) => ({ id, ok: true }))

test('clips are added at the end, in the order of the ids; those that the album has stay where they are', async () => {
  const [album, ids] = [await newAlbum(), await addClips(service, 120)]
  await bulk(ids.slice(5, 6), album)
  const { status, body } = await bulk(ids.toReversed(), album)
  expect([status, body.success.results]).toEqual([200, allOk(ids.toReversed())])
  const others = ids.filter((id) => id !== ids[5]).toReversed()
  expect(await itemsOf(album)).toEqual([ids[5], ...others])
})

test('an album that is full takes no more, and one clip is in at most 50 albums', async () => {
  const [album, ids] = [await newAlbum(), await addClips(service, 502)]
  await bulk(ids.slice(0, 499), album)
  const { body } = await bulk(ids.slice(498), album)
  expect(body.success.results).toMatchObject([
    { id: ids[498], ok: true },
    { id: ids[499], ok: true },
    { id: ids[500], ok: false, code: 'album_full' },
    { id: ids[501], ok: false, code: 'album_full' },
  ])
  expect(await itemsOf(album)).toEqual(ids.slice(0, 500))
  const [often = '', seldom = ''] = ids
  for (let n = 0; n < 49; n++) await bulk([often], await newAlbum())
  const last = await bulk([often, seldom], await newAlbum())
  expect(last.body.success.results).toMatchObject([{ ok: false, code: 'too_many_albums' }, { ok: true }])
})

test('an album that is unknown or of another token refuses the request; clips of others are not found', async () => {
  const other = await service.newToken()
  const admin = (await service.newToken({ scopes: ['admin'] })).token
  const [own = ''] = await addClips(service, 1)
  const [foreign = ''] = await addClips(service, 1, { token: other.token })
  for (const album of [await newAlbum(other.token), 'zzzzzzzz', 'no id', '']) {
    const { status, body } = await bulk([own], album)
    expect([status, body.error.code, body.error.param]).toEqual([422, 'invalid_field', 'album'])
  }
  const album = await newAlbum()
  for (const token of [service.token, admin]) {
    const { body } = await bulk([own, foreign], album, token)
    expect(body.success.results).toMatchObject([{ ok: true }, { ok: false, code: 'not_found' }])
  }
  expect(await itemsOf(album)).toEqual([own])
})

test('two requests about one album at once add every clip once', async () => {
  const [album, ids] = [await newAlbum(), await addClips(service, 110)]
  const answers = await Promise.all([bulk(ids, album), bulk(ids.toReversed(), album)])
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  expect((await itemsOf(album)).toSorted()).toEqual(ids.toSorted())
})
