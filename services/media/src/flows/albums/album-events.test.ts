// Events of albums, and requests by the session of a browser.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'

const FILE = gif(20, 12, [{ delay: 10 }])

let service: TestService
let token: string
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  token = service.token
  await service.ready(FILE)
})
afterAll(() => service.close())

const json = { 'content-type': 'application/json' }
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = { token }) =>
  service.call(method, path, {
    headers: { ...headers, ...(body === undefined ? {} : json) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

async function newWebhook(events?: string[], as = token): Promise<string> {
  const url = 'http://127.0.0.1:9/hook'
  const { status, body } = await send('POST', '/webhooks', { url, ...(events && { events }) }, { token: as })
  expect(status).toBe(201)
  return body.success.id
}

async function payloads(webhook: string, as = token) {
  const { body } = await service.get(`/webhooks/${webhook}/deliveries`, { token: as })
  return body.success.items.toReversed().map(({ payload }: { payload: object }) => payload)
}

test('a webhook has one event for each change, with the album, and none without a change', async () => {
  const webhook = await newWebhook(['album.created', 'album.updated', 'album.deleted'])
  const { token: other } = await service.newToken()
  const foreign = await newWebhook(undefined, other)
  const steps: [type: string, data: object][] = []
  const step = (type: string, data: object) => {
    steps.push([type, data])
    // Deliveries are listed by their time.
    service.clock.advance({ seconds: 1 })
  }

  const { success: album } = (await send('POST', '/albums', { title: 'Trip' })).body
  step('album.created', album)
  step('album.updated', (await send('PATCH', `/albums/${album.id}`, { title: 'Sea' })).body.success)
  const clip = idIn(await service.upload(FILE))
  const { success: put } = (await send('PUT', `/albums/${album.id}/items`, { ids: [clip] })).body
  step('album.updated', put)
  await send('PUT', `/albums/${album.id}/items`, { ids: [clip] })
  await send('POST', `/albums/${album.id}/items`, { ids: [clip] })
  await send('PATCH', `/albums/${album.id}`, { title: '' })
  await send('PATCH', `/albums/${album.id}`, { title: 'Stale' }, { token, 'if-match': '"0-0"' })
  await service.upload(FILE, [['album', album.id]])
  step('album.updated', { id: album.id, count: 2 })
  // The event of the clip says it.
  await send('DELETE', `/media/${clip}`)
  await send('DELETE', `/albums/${album.id}`)
  step('album.deleted', { id: album.id })

  expect(await payloads(webhook)).toMatchObject(steps.map(([type, data]) => ({ type, data })))
  expect(put).toMatchObject({ count: 1, cover: `https://files.example/f/${clip}.jpg` })
  expect(await payloads(foreign, other)).toEqual([])
})

test('a webhook without a choice of events has those of albums', async () => {
  const { token: own } = await service.newToken()
  const webhook = await newWebhook(undefined, own)
  const { success: album } = (await send('POST', '/albums', { title: 'Trip' }, { token: own })).body
  expect(await payloads(webhook, own)).toMatchObject([{ type: 'album.created', data: { id: album.id, count: 0 } }])
})

test('a browser that is signed in changes albums from our own pages alone', async () => {
  const own = { 'sec-fetch-site': 'same-origin', 'x-media': '1' }
  const session = await service.call('POST', '/session', { headers: { token, 'sec-fetch-site': 'same-origin' } })
  const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
  const made = await send('POST', '/albums', { title: 'By cookie' }, { cookie, ...own })
  expect(made.status).toBe(201)
  const path = `/albums/${made.body.success.id}`
  const read = await service.get(path, { cookie, ...own })
  expect([read.status, read.headers.get('cache-control')]).toEqual([200, 'private, no-store'])
  for (const headers of [{ 'sec-fetch-site': 'cross-site', 'x-media': '1' }, { 'sec-fetch-site': 'same-origin' }]) {
    for (const [method, suffix, body] of [
      ['PATCH', '', { title: 'x' }],
      ['PUT', '/items', { ids: [] }],
      ['DELETE', ''],
    ] as const) {
      const { status, body: answer } = await send(method, path + suffix, body, { cookie, ...headers } as Record<
        string,
        string
      >)
      expect([method, status, answer.error.code]).toEqual([method, 403, 'wrong_origin'])
    }
  }
  expect((await send('DELETE', path, undefined, { cookie, ...own })).status).toBe(204)
})
