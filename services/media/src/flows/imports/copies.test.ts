// New clips of the source of another one: of the original while it is kept, else of the mp4.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clip } from '../../../test/clips.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'
import { cleanUp } from '../../housekeeping.ts'

let service: TestService
let file: string
beforeAll(async () => {
  service = await startTestService({ MEDIA_SOURCE_KEEP: '2h' })
  file = await clip('small.mp4')
})
afterAll(() => service.close())

const copy = (id: string, body: object = {}, headers: Record<string, string> = {}) =>
  service.call('POST', `/media/${id}/copies`, {
    headers: { token: service.token, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const detailsOf = async (id: string) => (await service.get(`/media/${id}`, { token: service.token })).body.success
const hasOriginal = async (sha256: string) =>
  (await service.listFiles()).some((path) => path.endsWith('.source') && path.includes(sha256))

test('a copy is made of the original while it is kept, with fields and an edit of its own, and then of the mp4', async () => {
  const id = idIn(await service.upload(file, [['title', 'first']]))
  const original = (await detailsOf(id)).source.sha256
  service.clock.advance({ seconds: 3_600 })
  await cleanUp(service.deps)
  expect(await hasOriginal(original)).toBe(true)
  const made = await copy(id, { title: 'part', start: 0.2, duration: 0.5, visibility: 'unlisted' })
  expect([made.status, made.headers.get('x-media-state')]).toEqual([201, 'ready'])
  const part = await detailsOf(idIn(made))
  expect(part).toMatchObject({
    ...{ title: 'part', visibility: 'unlisted', edit: { start: 0.2, duration: 0.5 } },
    source: { kind: 'upload', sha256: original },
  })
  const key = { 'idempotency-key': 'again' }
  expect(idIn(await copy(id, {}, key))).toBe(idIn(await copy(id, {}, key)))
  service.clock.advance({ seconds: 3 * 3_600 })
  await cleanUp(service.deps)
  expect(await hasOriginal(original)).toBe(false)
  const later = await detailsOf(idIn(await copy(id, { start: 0.3 })))
  expect(later.source.sha256).toBe((await detailsOf(id)).sizes.mp4.sha256)
})

test('an original goes ten minutes after the last clip of its source', async () => {
  const id = idIn(await service.upload(await clip('small-sound.mp4')))
  const { sha256 } = (await detailsOf(id)).source
  expect(await hasOriginal(sha256)).toBe(true)
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  service.clock.advance({ seconds: 660 })
  await cleanUp(service.deps)
  await cleanUp(service.deps)
  expect(await hasOriginal(sha256)).toBe(false)
})

test('a clip is copied by its owner alone, who may write, when it is ready and not hidden', async () => {
  const id = idIn(await service.ready(file))
  const statusOf = async (of: string, token = service.token) => (await copy(of, {}, { token })).status
  const [other, admin] = [await service.newToken(), await service.newToken({ scopes: ['admin'] })]
  const reader = await service.newToken({ scopes: ['read'] })
  expect(await Promise.all([other, admin, reader].map(({ token }) => statusOf(id, token)))).toEqual([404, 404, 403])
  const { pool } = service.deps
  await pool.query('update clips set hidden_at = now() where id = $1', [id])
  expect(await statusOf(id)).toBe(451)
  await pool.query('update clips set hidden_at = null where id = $1', [id])
  const setState = (state: string, code: string | null) =>
    pool.query(
      `update sources set state = $2, error_code = $3 where id = (select source_id from clips where id = $1)`,
      [id, state, code],
    )
  await setState('processing', null)
  expect(await statusOf(id)).toBe(503)
  await setState('failed', 'internal')
  expect(await statusOf(id)).toBe(404)
  await setState('ready', null)
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect([await statusOf(id), await statusOf('xxxxxxxx')]).toEqual([410, 404])
})

test('a copy counts as an upload: its token has the same limits', async () => {
  const token = await service.newToken({ limits: { upload: 2 } })
  const headers = { token: token.token }
  const id = idIn(await service.ready(file, [], headers))
  expect([(await copy(id, {}, headers)).status, (await copy(id, {}, headers)).status]).toEqual([201, 429])
})
