// Conditional changes of a clip: two tabs of one owner do not overwrite each other.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '10000/1m' })
})
afterAll(() => service.close())

let sizes = 20
const newClip = async (fields: [string, string][] = []) =>
  idIn(await service.readyAlike(gif(sizes++, 10, [{ delay: 10 }]), fields))
const etagOf = async (id: string) =>
  (await service.get(`/media/${id}`, { token: service.token })).headers.get('etag') ?? ''
const change = (id: string, body: object, headers: Record<string, string> = {}, token = service.token) =>
  service.call('PATCH', `/media/${id}`, {
    headers: { token, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

test.for([
  { title: 'New' },
  { tags: ['new'] },
  { nsfw: true },
  { attribution: { site: 'reddit', user: 'a' } },
  { visibility: 'unlisted' },
  { expires_in: '2d' },
  { sliding: true },
])('the ETag changes with %j, and a change by the old one is refused with the clip of now', async (changes) => {
  const id = await newClip([['expires_in', '1d']])
  const old = await etagOf(id)
  expect(old).toMatch(/^"[\w-]{22}"$/)
  const changed = await change(id, changes, { 'if-match': old })
  expect(changed.status).toBe(200)
  expect(changed.headers.get('etag')).toBe(await etagOf(id))
  expect(await etagOf(id)).not.toBe(old)
  for (const late of [{ title: 'Late' }, { visibility: 'private' }, {}]) {
    const { status, body } = await change(id, late, { 'if-match': old })
    expect([status, body.error.code]).toEqual([412, 'clip_changed'])
    expect(body.error.details.etag).toBe(await etagOf(id))
    const { body: now } = await service.get(`/media/${id}`, { token: service.token })
    expect(body.error.details.clip).toEqual(now.success)
  }
})

test('nothing but the owner changes the ETag: no state, view or visit', async () => {
  const id = await newClip([
    ['expires_in', '7d'],
    ['sliding', 'true'],
  ])
  const etag = await etagOf(id)
  const { pool } = service.deps
  await pool.query(`update clips set expires_at = expires_at + interval '1 day', hidden_at = now() where id = $1`, [id])
  await pool.query('update sources set progress = 0.5 where id = (select source_id from clips where id = $1)', [id])
  await pool.query('insert into clip_view_sums (clip_id, page) values ($1, 5)', [id])
  expect(await etagOf(id)).toBe(etag)
})

test.for([
  ['*', 200],
  ['"x", ETAG', 200],
  ['W/ETAG', 412],
  ['"x"', 412],
  ['', 412],
] as const)('If-Match: %s answers %i, by strong comparison', async ([header, status]) => {
  const id = await newClip()
  const answer = await change(id, { title: 'x' }, { 'if-match': header.replace('ETAG', await etagOf(id)) })
  expect(answer.status).toBe(status)
})

test('of two changes at once with one ETag, one is refused', async () => {
  const id = await newClip()
  const etag = await etagOf(id)
  const answers = await Promise.all(
    [{ title: 'a' }, { title: 'b' }, { visibility: 'private' }].map((changes) =>
      change(id, changes, { 'if-match': etag }),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412])
})

test('a clip of another token is not found, and one that is deleted is gone, whatever the condition', async () => {
  const [id, deleted] = [await newClip(), await newClip()]
  await service.call('DELETE', `/media/${deleted}`, { headers: { token: service.token } })
  const { token } = await service.newToken()
  for (const header of ['*', '"x"']) {
    expect((await change(id, { title: 'x' }, { 'if-match': header }, token)).status).toBe(404)
    expect((await change(deleted, { title: 'x' }, { 'if-match': header })).status).toBe(410)
  }
})
