// Links to private clips, listed for their owner: addresses that work, until they expire or all are ended.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'
import { MOST_LISTED } from '../../core/clip-access/links.store.ts'
import { cleanUp } from '../../housekeeping.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '10000/1m' })
})
afterAll(() => service.close())

let sizes = 20
const newClip = async () =>
  idIn(await service.readyAlike(gif(sizes++, 10, [{ delay: 10 }]), [['visibility', 'private']]))
const make = async (id: string, expiresIn: string) => {
  const body = JSON.stringify({ expires_in: expiresIn })
  const headers = { token: service.token, 'content-type': 'application/json' }
  return (await service.call('POST', `/media/${id}/links`, { headers, body })).body.success
}
const list = (id: string, token = service.token) => service.get(`/media/${id}/links`, { token })
const itemsOf = async (id: string) => (await list(id)).body.success.items
const pathOf = (url: string) => url.replace('https://media.example', '')

test('a list has the links that were made, newest first, with addresses that open the clip', async () => {
  const id = await newClip()
  expect(await itemsOf(id)).toEqual([])
  const short = await make(id, '10m')
  service.clock.advance({ seconds: 1 })
  const long = await make(id, '7d')
  const items = await itemsOf(id)
  expect(items.map(({ created_at: _, ...link }: { created_at: string }) => link)).toEqual([long, short])
  expect(items.map((link: { created_at: string }) => link.created_at)).toEqual(
    items.map((link: { created_at: string }) => new Date(link.created_at).toISOString()),
  )
  for (const { url } of items) expect((await service.get(pathOf(url))).status).toBe(200)
  service.clock.advance({ seconds: 660 })
  expect(await itemsOf(id)).toMatchObject([{ url: long.url }])
  await cleanUp(service.deps)
  expect((await service.deps.pool.query('select from clip_links where clip_id = $1', [id])).rowCount).toBe(1)
})

test('an end of all links leaves none in the list, and none that opens the clip', async () => {
  const id = await newClip()
  const { url } = await make(id, '1h')
  expect((await service.call('DELETE', `/media/${id}/links`, { headers: { token: service.token } })).status).toBe(204)
  expect([await itemsOf(id), (await service.get(pathOf(url))).status]).toEqual([[], 404])
  const after = await make(id, '2h')
  expect(await itemsOf(id)).toMatchObject([{ url: after.url }])
})

test('a link that is made while all are ended is listed if and only if it is good', async () => {
  const id = await newClip()
  for (let round = 0; round < 5; round++) {
    const [link] = await Promise.all([
      make(id, `${10 + round}m`),
      service.call('DELETE', `/media/${id}/links`, { headers: { token: service.token } }),
    ])
    const isGood = (await service.get(pathOf(link.url))).status === 200
    expect((await itemsOf(id)).map(({ url }: { url: string }) => url).includes(link.url)).toBe(isGood)
  }
})

test('a clip lists its newest links; further ones stay good', async () => {
  const id = await newClip()
  const first = await make(id, '20d')
  service.clock.advance({ seconds: 1 })
  for (let n = 0; n < MOST_LISTED; n++) await make(id, `${60 + n}s`)
  const items = await itemsOf(id)
  expect(items).toHaveLength(MOST_LISTED)
  expect(items.map(({ url }: { url: string }) => url)).not.toContain(first.url)
  expect((await service.get(pathOf(first.url))).status).toBe(200)
})

test('links are for tokens that may make them, of clips that are there', async () => {
  const [id, deleted] = [await newClip(), await newClip()]
  await make(id, '1h')
  const reader = await service.newToken({ scopes: ['read', 'delete'] })
  const other = await service.newToken()
  await service.call('DELETE', `/media/${deleted}`, { headers: { token: service.token } })
  const statuses = [
    await list(id, reader.token),
    await list(id, other.token),
    await list(deleted),
    await list('xxxxxxxx'),
  ]
  expect(statuses.map(({ status }) => status)).toEqual([403, 404, 410, 404])
  await service.deps.pool.query('update clips set hidden_at = now() where id = $1', [id])
  expect(await itemsOf(id)).toHaveLength(1)
})
