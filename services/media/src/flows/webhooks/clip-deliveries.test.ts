// Deliveries about one clip: those of the caller's own webhooks, by cursor.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => service.close())

let sizes = 20
const newClip = async (token: string) =>
  idIn(await service.readyAlike(gif(sizes++, 10, [{ delay: 10 }]), [], { token }))
const list = (id: string, token: string, search = '') => service.get(`/media/${id}/deliveries${search}`, { token })
const idsIn = async (...of: Parameters<typeof list>): Promise<string[]> =>
  (await list(...of)).body.success.items.map(({ id }: { id: string }) => id)

async function webhookOf(token: string): Promise<string> {
  const headers = { token, 'content-type': 'application/json' }
  const body = JSON.stringify({ url: 'http://127.0.0.1:1/hook' })
  return (await service.call('POST', '/webhooks', { headers, body })).body.success.id
}

async function deliver(webhook: string, clip: string, type = 'media.ready'): Promise<string> {
  service.clock.advance({ seconds: 1 })
  const id = randomUUID()
  const payload = JSON.stringify({ type, data: { id: clip } })
  await service.deps.pool.query(
    `insert into webhook_deliveries (id, webhook_id, type, payload, state, give_up_at, created_at)
     values ($1, $2, $3, $4, 'delivered', $5, $5)`,
    [id, webhook, type, payload, service.clock.now()],
  )
  return id
}

test('the deliveries of all own webhooks about a clip come newest first, in pages', async () => {
  const { token } = await service.newToken()
  const [clip, other] = [await newClip(token), await newClip(token)]
  const [one, two] = [await webhookOf(token), await webhookOf(token)]
  const ids = [await deliver(one, clip), await deliver(two, clip), await deliver(one, clip, 'media.deleted')]
  await deliver(one, other)
  await deliver(one, clip, 'album.created')
  expect(await idsIn(clip, token)).toEqual(ids.toReversed())
  const first = await list(clip, token, '?limit=2')
  const { items, next_cursor: cursor } = first.body.success
  expect(items).toMatchObject([
    { webhook_id: one, type: 'media.deleted' },
    { webhook_id: two, state: 'delivered' },
  ])
  expect(first.headers.get('link')).toContain(`/media/${clip}/deliveries?limit=2&cursor=${cursor}`)
  expect(await idsIn(clip, token, `?limit=2&cursor=${cursor}`)).toEqual([ids[0]])
})

test('no other token sees them: neither the deliveries of others, nor those about clips of others', async () => {
  const { token } = await service.newToken()
  const clip = await newClip(token)
  const own = await deliver(await webhookOf(token), clip)
  const admin = await service.newToken({ scopes: ['admin'] })
  const ofAdmin = await deliver(await webhookOf(admin.token), clip, 'media.hidden')
  const [other, writer] = [await service.newToken(), await service.newToken({ scopes: ['write'] })]
  expect([await idsIn(clip, token), await idsIn(clip, admin.token)]).toEqual([[own], [ofAdmin]])
  expect([(await list(clip, other.token)).status, (await list(clip, writer.token)).status]).toEqual([404, 403])
  expect((await list(clip, token, '?cursor=x')).status).toBe(422)
  await service.deps.pool.query('update clips set hidden_at = now() where id = $1', [clip])
  expect(await idsIn(clip, token)).toEqual([own])
  await service.call('DELETE', `/media/${clip}`, { headers: { token } })
  expect((await list(clip, token)).status).toBe(410)
})
