// Which clips of an album a visitor is shown. Pages, player, feed and oEmbed of albums read nothing else.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'
import { etagOf, findAlbum } from '../../core/albums/albums.store.ts'
import { findShownPlace, listShownItems } from '../../core/albums/shown-items.store.ts'
import type { Visibility } from '../../db/tables.ts'

let service: TestService
let clips: string[]
const ALBUM = 'Album001'
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => service.close())

const sql = (text: string, values: unknown[] = []) => service.deps.pool.query(text, values)

let frames = 0
/** An album of four clips with a source each, which a test may change. */
beforeEach(async () => {
  await sql('delete from albums')
  clips = []
  for (const _ of Array(4)) clips.push(idIn(await service.readyAlike(gif(20, 12, [{ delay: ++frames }]))))
  await sql(
    `with token as (select token_id from clips where id = $2)
     insert into albums (id, token_id, title, visibility, created_at, updated_at)
       select $1, token_id, 'Trip', 'public', now(), now() from token`,
    [ALBUM, clips[0]],
  )
  await sql(
    `insert into album_items (album_id, clip_id, position, added_at)
     select $1, id, position, now() from unnest($2::text[]) with ordinality item (id, position)`,
    [ALBUM, clips],
  )
})

async function shown(visibility: Visibility = 'public', options: { limit?: number } = {}): Promise<string[]> {
  const items = await listShownItems(
    service.deps.db,
    { id: ALBUM, visibility },
    { now: service.clock.now(), ...options },
  )
  return items.map(({ id }) => id)
}

test('the clips of an album are shown in its order, up to a limit', async () => {
  expect(await shown()).toEqual(clips)
  await sql('update album_items set position = 10 - position')
  expect(await shown()).toEqual(clips.toReversed())
  expect(await shown('public', { limit: 1 })).toEqual([clips[3]])
})

test.for([
  ['deleted', `update clips set source_id = null, deleted_at = now() where id = $1`],
  ['deleted with its row', `delete from clips where id = $1`],
  ['expired', `update clips set expires_at = '2000-01-01' where id = $1`],
  ['hidden', `update clips set hidden_at = now(), hidden_reason = 'spam' where id = $1`],
  [
    'failed',
    `update sources set state = 'failed', error_code = 'internal' where id = (select source_id from clips where id = $1)`,
  ],
  [
    'being made',
    `update sources set state = 'processing', has_first_files = true
     where id = (select source_id from clips where id = $1)`,
  ],
  ['taken out', `delete from album_items where clip_id = $1`],
] as const)('a clip that is %s is not shown, and leaves no gap', async ([, statement]) => {
  const [first = '', second = '', ...rest] = clips
  await sql(statement, [second])
  for (const visibility of ['public', 'unlisted', 'private'] as const) {
    expect(await shown(visibility)).toEqual([first, ...rest])
    const find = (clipId: string) =>
      findShownPlace(service.deps.db, { id: ALBUM, visibility }, { clipId, now: service.clock.now() })
    expect((await find(first))?.id).toBe(first)
    expect((await find(second))?.id).toBe(first)
  }
})

test('a private clip is shown in a private album alone', async () => {
  const [first = '', ...rest] = clips
  await sql(`update clips set visibility = 'private' where id = $1`, [first])
  expect(await shown('private')).toEqual(clips)
  expect(await shown('public')).toEqual(rest)
  expect(await shown('unlisted')).toEqual(rest)
})

test('a deleted clip leaves its albums, whose tag changes', async () => {
  const tag = async () => {
    const album = await findAlbum(service.deps.db, ALBUM)
    return album && { count: album.count, etag: etagOf(album) }
  }
  const before = await tag()
  expect(before?.count).toBe(4)
  expect((await service.call('DELETE', `/media/${clips[0]}`, { headers: { token: service.token } })).status).toBe(204)
  const after = await tag()
  expect(after?.count).toBe(3)
  expect(after?.etag).not.toBe(before?.etag)
})
