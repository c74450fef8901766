// Albums by the client, packages/media-client.
import { expect } from 'vitest'
import { createMediaClient } from '../../../../../packages/media-client/src/media-client.ts'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, test } from '../../../test/service.ts'

async function idsOf(list: AsyncIterable<{ id: string }>): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of list) ids.push(id)
  return ids
}

test('the client makes, lists, fills, orders, changes and deletes albums', async ({ service }) => {
  const { albums, ...client } = createMediaClient({ baseUrl: service.url, token: service.token })
  const file = gif(20, 12, [{ delay: 10 }])
  const [a, b] = [idIn(await service.ready(file)), idIn(await service.ready(file))]
  const made = await albums.create({ title: 'Trip', visibility: 'unlisted' })
  expect(made).toMatchObject({ title: 'Trip', description: null, visibility: 'unlisted', count: 0 })
  service.clock.advance({ seconds: 1 })
  const other = await albums.create({ title: 'Other' })
  expect(await idsOf(albums.list({ pageSize: 1 }))).toEqual([other.id, made.id])

  const set = await albums.setClips(made.id, [a], { etag: made.etag })
  expect(set.count).toBe(1)
  await albums.addClips(made.id, [b], { before: a })
  const { id: c } = await client.upload(file, { fields: { album: made.id } })
  const clipsOf = () => idsOf(albums.clips(made.id, { pageSize: 2 }))
  expect(await clipsOf()).toEqual([b, a, c])
  expect((await idsOf(client.list({ album: made.id }))).sort()).toEqual([a, b, c].sort())
  await expect(albums.setClips(made.id, [a], { etag: set.etag })).rejects.toMatchObject({ code: 'album_changed' })
  await albums.removeClip(made.id, b)
  expect(await clipsOf()).toEqual([a, c])

  await albums.update(made.id, { title: 'Sea' })
  const found = await albums.get(made.id)
  expect(found).toMatchObject({ id: made.id, title: 'Sea', count: 2 })
  expect(found).not.toHaveProperty('items')
  await albums.delete(made.id)
  await expect(albums.get(made.id)).rejects.toMatchObject({ code: 'not_found' })
})
