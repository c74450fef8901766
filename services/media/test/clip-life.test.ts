import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { idIn, startTestService, test } from './service.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('a clip reports the checksum of its source and of each of its files', async ({ service }) => {
  const path = await clip('plain.gif')
  const id = idIn(await service.ready(path))
  const { source, sizes } = (await service.get(`/media/${id}`, { token: service.token })).body.success
  expect(source.sha256).toBe(sha256(await readFile(path)))
  expect(Object.keys(sizes)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  for (const [kind, file] of Object.entries<{ sha256: string; bytes: number }>(sizes)) {
    const { bytes } = await service.get(`/f/${id}.${kind}`)
    expect(file).toMatchObject({ sha256: sha256(bytes), bytes: bytes.length })
  }
  const { items } = (await service.get('/media', { token: service.token })).body.success
  expect(items.find((item: { id: string }) => item.id === id).sizes).toEqual(sizes)
})

test.for([
  ['mp4', 'fits-short.mp4'],
  ['webm', 'fits.webm'],
] as const)('details say which file of an %s has its own streams', async ([kind, name], { service }) => {
  const id = idIn(await service.ready(await clip(name)))
  const { sizes } = (await service.get(`/media/${id}`, { token: service.token })).body.success
  for (const each of ['gif', 'jpg', 'mp4', 'webm']) expect(sizes[each].copied).toBe(each === kind ? true : undefined)
})

test('page, player and oEmbed show a change at once, even through caches that hold the old ones', async ({
  service,
}) => {
  const id = idIn(await service.ready(await clip('plain.gif'), [['title', 'Before']]))
  const paths = [`/gif/${id}`, `/embed/${id}`, `/oembed/${id}`, `/oembed/${id}?format=xml`]
  const before = await Promise.all(paths.map((path) => service.get(path)))
  for (const [index, path] of paths.entries()) {
    const etag = before[index]?.headers.get('etag') ?? ''
    expect(before[index]?.text).toContain('Before')
    expect(before[index]?.headers.get('cache-control')).toBe('public, no-cache')
    const again = await service.get(path, { 'if-none-match': `"other", W/${etag}` })
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag])
  }
  await service.call('PATCH', `/media/${id}`, {
    body: JSON.stringify({ title: 'After' }),
    headers: { token: service.token, 'content-type': 'application/json' },
  })
  for (const [index, path] of paths.entries()) {
    const after = await service.get(path, { 'if-none-match': before[index]?.headers.get('etag') ?? '' })
    expect(after.status).toBe(200)
    expect(after.text).toContain('After')
    expect(after.text).not.toContain('Before')
  }
})

test('a 304 has the headers of the full answer', async ({ service }) => {
  const id = idIn(await service.ready(await clip('plain.gif')))
  const files = ['mp4', 'webm', 'gif', 'jpg'].map((kind) => `/f/${id}.${kind}`)
  const described = ({ headers }: { headers: Headers }) => {
    const {
      date,
      'x-request-id': _own,
      'content-type': _type,
      'content-length': _length,
      ...rest
    } = Object.fromEntries(headers)
    return { date: typeof date, ...rest }
  }
  for (const path of [`/gif/${id}`, `/embed/${id}`, `/oembed/${id}`, `/oembed/${id}?format=xml`, ...files]) {
    const full = await service.get(path)
    const again = await service.get(path, { 'if-none-match': full.headers.get('etag') ?? '' })
    expect([path, again.status, described(again)]).toEqual([path, 304, described(full)])
  }
})

test('a clip deleted before its transcode is gone at once, is not transcoded, and leaves nothing', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(gif(30, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' }))
  const remove = () => service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect((await remove()).status).toBe(204)
  for (const path of [`/gif/${id}`, `/embed/${id}`, `/oembed/${id}`, `/f/${id}.mp4`]) {
    expect([path, (await service.get(path)).status]).toEqual([path, 410])
  }
  expect((await remove()).status).toBe(410)
  await service.startWorker()
  await expect.poll(() => service.traces()).toEqual({ files: [], clips: 1, sources: 0 })
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(410)
  await service.close()
})

test('a request that waits for a clip deleted before its transcode reports the deletion', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const waiting = service.upload(gif(30, 21, [{ delay: 10 }]))
  const ids = async () => (await service.deps.pool.query('select id from clips')).rows
  await expect.poll(async () => (await ids()).length).toBe(1)
  const [{ id }] = await ids()
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  await service.startWorker()
  const { status, body } = await waiting
  expect([status, body.error.code]).toEqual([410, 'gone'])
  await service.close()
})

test('a clip deleted during its transcode stays deleted, and its files expire by the clock', async () => {
  const ffmpeg = await heldFfmpeg()
  const service = await startTestService({}, { tools: ffmpeg.tools })
  const { pool } = service.deps
  const id = idIn(await service.upload(await clip('small.mp4'), [], { prefer: 'respond-async' }))
  await ffmpeg.hasBegun()
  const { status } = await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect([status, service.deps.atWork.clips()]).toEqual([204, 1])
  await ffmpeg.release()
  const stateOfSource = async () => (await pool.query('select state from sources')).rows[0]?.state
  await expect.poll(stateOfSource).toBe('ready')
  for (const path of [`/gif/${id}`, `/f/${id}.mp4`]) expect((await service.get(path)).status).toBe(410)
  service.clock.advance({ seconds: 601 })
  // The files lose their source in the first round, and have been without one for long enough in the second.
  await cleanUp(service.deps)
  service.clock.advance({ seconds: 601 })
  await cleanUp(service.deps)
  expect(await service.traces()).toEqual({ files: [], clips: 1, sources: 0 })
  await service.close()
})

test('a deleted clip answers 410 for as long as its tombstone is kept, then 404 like any unknown one', async () => {
  const service = await startTestService({ MEDIA_TOMBSTONES_KEEP: '48h', MEDIA_WORKERS_ENABLED: 'false' })
  const [id = '', kept = ''] = await Promise.all(
    [31, 32].map(async (side) =>
      idIn(await service.upload(gif(side, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' })),
    ),
  )
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  const paths = [`/gif/${id}`, `/f/${id}.mp4`, `/embed/${id}`]
  const statuses = async () => Promise.all(paths.map(async (path) => (await service.get(path)).status))
  service.clock.advance({ seconds: 2 * 86_400 })
  await cleanUp(service.deps)
  expect(await statuses()).toEqual([410, 410, 410])
  service.clock.advance({ seconds: 1 })
  await cleanUp(service.deps)
  expect(await statuses()).toEqual([404, 404, 404])
  expect((await service.get(`/media/${kept}`, { token: service.token })).status).toBe(200)
  await service.close()
})

test('a deleted clip answers 410 for a year by default', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(gif(33, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' }))
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  service.clock.advance({ seconds: 364 * 86_400 })
  await cleanUp(service.deps)
  expect((await service.get(`/gif/${id}`)).status).toBe(410)
  await service.close()
})
