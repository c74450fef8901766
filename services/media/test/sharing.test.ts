import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { scrambled } from './scrambled.ts'
import { type Answer, BASE_URL, idIn, startTestService, type TestService, test } from './service.ts'

const KINDS = ['gif', 'jpg', 'mp4', 'webm']
const isStored = (path: string) => !path.startsWith('work/') && /\.(gif|jpg|mp4|webm|source)$/.test(path)
const remove = (service: TestService, id: string) =>
  service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
const jobs = async (service: TestService) =>
  (await service.deps.pool.query(`select state from media_queue.job where name = 'transcode'`)).rows

test('twenty uploads of the same bytes at once are twenty clips of one transcode, and each can be deleted', async () => {
  const service = await startTestService({ MEDIA_PARALLEL_PER_TOKEN: '20' })
  const path = await clip('small.mp4')
  const answers = await Promise.all(Array.from({ length: 20 }, () => service.upload(path)))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
  const ids = answers.map(idIn)
  expect(new Set(ids).size).toBe(20)
  expect(await service.countRows()).toEqual({ clips: 20, sources: 1 })
  expect(await jobs(service)).toHaveLength(1)
  // Four files, and the original, which housekeeping deletes.
  expect((await service.traces()).files.filter(isStored)).toHaveLength(5)

  const etag = async (id: string) => (await service.call('HEAD', `/f/${id}.mp4`)).headers.get('etag')
  expect(new Set(await Promise.all(ids.map(etag))).size).toBe(1)

  const [last, ...others] = ids as [string, ...string[]]
  expect(await Promise.all(others.map(async (id) => (await remove(service, id)).status))).toEqual(Array(19).fill(204))
  service.clock.advance({ seconds: 3600 })
  await cleanUp(service.deps)
  expect((await service.get(`/f/${last}.gif`)).status).toBe(200)
  expect(await service.get(`/f/${others[0]}.gif`)).toMatchObject({ status: 410, body: { error: { code: 'gone' } } })

  await remove(service, last)
  service.clock.advance({ seconds: 599 })
  await cleanUp(service.deps)
  expect((await service.listFiles()).filter(isStored)).toHaveLength(4)
  expect((await service.countRows()).sources).toBe(1)
  service.clock.advance({ seconds: 2 })
  await cleanUp(service.deps)
  service.clock.advance({ seconds: 601 })
  await cleanUp(service.deps)
  expect((await service.listFiles()).filter(isStored)).toEqual([])
  expect((await service.countRows()).sources).toBe(0)
  await service.close()
})

test('the same bytes again are answered from the store, even after every clip of them was deleted', async ({
  service,
}) => {
  const path = await clip('small-sound.mp4')
  const first = await service.ready(path, [['title', 'first']])
  await remove(service, idIn(first))
  const transcodes = (await jobs(service)).length
  const second = await service.upload(path, [['title', 'second']])
  expect(second.status).toBe(201)
  expect((await jobs(service)).length).toBe(transcodes)
  service.clock.advance({ seconds: 3600 })
  await cleanUp(service.deps)
  for (const kind of KINDS) expect((await service.get(`/f/${idIn(second)}.${kind}`)).status).toBe(200)
  expect((await service.get(`/gif/${idIn(second)}`)).text).toContain('second')
})

test('clean-up beside uploads and deletions of the same bytes never loses a file of a living clip', async ({
  service,
}) => {
  const bytes = gif(44, 20, [{ delay: 10 }])
  const round = async () => {
    const answer = await service.upload(bytes)
    expect(answer.status).toBe(201)
    for (const kind of KINDS) expect((await service.get(`/f/${idIn(answer)}.${kind}`)).status).toBe(200)
    await remove(service, idIn(answer))
  }
  for (let n = 0; n < 8; n++) {
    service.clock.advance({ seconds: 601 })
    await Promise.all([round(), round(), cleanUp(service.deps)])
  }
})

test('a clip that responds async, or waits too long, is answered with its addresses, which fill in later', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '300ms' })
  const bytes = gif(40, 20, [{ delay: 20 }, { delay: 20, color: 1 }])
  const headersOf = ({ headers }: Answer) =>
    ['location', 'preference-applied', 'x-media-state'].map((name) => headers.get(name))
  const added = await service.upload(bytes, [], { prefer: 'respond-async' })
  expect(added.status).toBe(201)
  expect(headersOf(added)).toEqual([`${BASE_URL}/media/${idIn(added)}`, 'respond-async', 'processing'])
  const waited = await service.upload(bytes)
  expect(headersOf(waited)).toEqual([`${BASE_URL}/media/${idIn(waited)}`, null, 'processing'])
  expect(Object.keys(waited.body.success).toSorted()).toEqual(['embed', 'files', 'meta', 'oembed', 'page'])

  const file = await service.get(`/f/${idIn(added)}.mp4`)
  expect([file.status, file.headers.get('cache-control'), file.body]).toEqual([
    202,
    'no-store',
    { state: 'processing', progress: 0 },
  ])
  expect(Number(file.headers.get('retry-after'))).toBeGreaterThan(0)
  const page = await service.get(`/gif/${idIn(added)}`)
  expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(page.text).toContain('http-equiv="refresh"')

  await service.startWorker()
  await expect.poll(async () => (await service.get(`/f/${idIn(added)}.mp4`)).status).toBe(200)
  const { body } = await service.get(`/media/${idIn(waited)}`, { token: service.token })
  expect(body.success).toMatchObject({ state: 'ready', progress: 1, sizes: { gif: { width: 40, height: 20 } } })
  const again = await service.upload(bytes, [], { prefer: 'respond-async' })
  expect(headersOf(again)).toEqual([`${BASE_URL}/media/${idIn(again)}`, null, 'ready'])
  await service.close()
})

test('clips beyond the queue limit are refused with Retry-After', async () => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_SYNC_WAIT: '0',
    MEDIA_QUEUE_LIMIT: '2',
    MEDIA_QUEUE_PER_TOKEN: '2',
  })
  const answers = []
  for (let n = 0; n < 3; n++) answers.push(await service.upload(gif(30 + n, 10, [{ delay: 10 }])))
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 503])
  expect(answers[2]?.body.error.code).toBe('busy')
  expect(Number(answers[2]?.headers.get('retry-after'))).toBeGreaterThan(0)
  await service.close()
})

test('a clip that fails after it was answered says so: 404 for its files, the reason for its owner', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const answer = await service.upload(scrambled(await readFile(await clip('small.mp4'))), [], {
    prefer: 'respond-async',
  })
  expect(answer.status).toBe(201)
  await service.startWorker()
  const details = () => service.get(`/media/${idIn(answer)}`, { token: service.token })
  await expect.poll(async () => (await details()).body.success.state).toBe('failed')
  expect((await details()).body.success.failure.code).toBe('corrupt_media')
  expect((await service.get(`/f/${idIn(answer)}.mp4`)).status).toBe(404)
  const page = await service.get(`/gif/${idIn(answer)}`)
  expect([page.status, page.text]).toEqual([404, expect.stringContaining('could not be processed')])
  await expect.poll(() => service.listFiles()).toEqual([])
  await service.close()
})
