import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parseFixedVariant, type Variant } from '../src/core/variants/variant.ts'
import type { Deps } from '../src/deps.ts'
import { checkBlobs, type Finding } from '../src/flows/check/check-blobs.ts'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { makeVariantOfSource } from '../src/make/jobs/add-variant.ts'
import { VARIANTS_QUEUE } from '../src/make/jobs/queues.ts'
import { StorageUnavailable } from '../src/store/blobs/blob-storage.ts'
import { clip, unboxedTools } from './clips.ts'
import { newGif } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { programThat } from './program.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

const codeOf = ({ status, body }: Answer) => `${status} ${body?.error?.code}`
const rows = async ({ deps }: TestService) =>
  (await deps.pool.query('select name, state from variants order by name')).rows
const temporary = async (service: TestService) => (await service.listFiles()).filter((path) => /^work\/.*\//.test(path))
const stored = async (service: TestService) =>
  (await service.listFiles()).filter((path) => !path.startsWith('work/')).sort()
const made = async (service: TestService, path: string) => {
  await expect.poll(async () => (await service.get(path)).status).toBe(200)
  return service.get(path)
}

/** The job of a variant that was requested, as a worker gets it. */
async function jobOf(
  { deps }: TestService,
  name: string,
  { retryCount = 0, signal = new AbortController().signal } = {},
) {
  const { rows } = await deps.pool.query('select id from sources')
  const variant = parseFixedVariant(name) as Variant
  return { id: randomUUID(), data: { sourceId: rows[0].id as string, name, variant }, retryCount, signal }
}

const lastAttempt = { retryCount: VARIANTS_QUEUE.retryLimit }
const withFfmpeg = (deps: Deps, path: string) => ({
  ...deps,
  tools: { ...deps.tools, ffmpeg: { ...deps.tools.ffmpeg, path } },
})

/** A service with a ready clip, and no worker that would make its variants. */
async function withoutWorkers(settings: Record<string, string> = {}) {
  const service = await startTestService({ ...settings, MEDIA_WORKERS_ENABLED: 'false' })
  return { service, id: idIn(await service.ready(await clip('low.mp4'))) }
}

/** An ffmpeg that notes each run of its arguments; `runs` counts those that contain the words. */
async function countingFfmpeg() {
  const directory = await mkdtemp(join(tmpdir(), 'media-runs-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const notes = join(directory, 'runs')
  await writeFile(notes, '')
  const path = await programThat(`echo "$*" >>'${notes}'\nexec '${unboxedTools.ffmpeg.path}' "$@"`)
  const runs = async (words: string) =>
    (await readFile(notes, 'utf8')).split('\n').filter((line) => line.includes(words)).length
  return { tools: { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } }, runs }
}

test('a variant that is requested of two services at once, many times, is made once', async () => {
  const { tools, runs } = await countingFfmpeg()
  const first = await startTestService({}, { tools })
  const { database, storage } = first.deps.config
  const same = { MEDIA_DATABASE_URL: database.url, MEDIA_BLOBS_DIR: first.blobsDir, MEDIA_WORK_DIR: storage.workDir }
  const second = await startTestService(same, { tools })
  const id = idIn(await first.ready(await clip('low.mp4')))
  const all = (name: string) =>
    Promise.all(Array.from({ length: 12 }, (_, n) => (n % 2 ? first : second).get(`/f/${id}/${name}`)))
  const stills = await all('t0.5.jpg')
  expect(new Set(stills.map(({ status }) => status))).toEqual(new Set([200]))
  expect(new Set(stills.map(({ headers }) => headers.get('etag'))).size).toBe(1)
  expect(await runs('poster.rgb')).toBe(1)
  await all('w480.mp4')
  await made(first, `/f/${id}/w480.mp4`)
  await made(second, `/f/${id}/w480.mp4`)
  expect(await runs('variant.mp4')).toBe(1)
  expect((await first.deps.pool.query(`select from media_queue.job where name = 'variants'`)).rows).toHaveLength(1)
  await second.close()
  await first.close()
})

test('requests at once never claim more than 40 signed variants of a clip', async () => {
  const key = 'key-of-many-variants'
  const { service, id } = await withoutWorkers({ MEDIA_VARIANT_KEY: key, MEDIA_DB_MAX_POOL_SIZE: '20' })
  const paths = Array.from({ length: 60 }, (_, n) => `/w:${20 + n}/${id}.gif`)
  const answers = await Promise.all(paths.map((path) => service.get(`/v/${signVariant(key, path)}${path}`)))
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(40)
  expect(new Set(answers.map(codeOf))).toEqual(new Set(['202 undefined', '429 too_many_variants']))
  expect(await rows(service)).toHaveLength(40)
  expect((await service.deps.pool.query(`select from media_queue.job where name = 'variants'`)).rows).toHaveLength(40)
  await service.close()
})

test('a token has a part of the queue of variants, however many are requested at once; others have theirs', async () => {
  const key = 'key-of-many-variants'
  const { service, id } = await withoutWorkers({ MEDIA_VARIANT_KEY: key, MEDIA_QUEUE_LIMIT: '4' })
  const request = (clipId: string, width: number) => {
    const path = `/w:${width}/${clipId}.gif`
    return service.get(`/v/${signVariant(key, path)}${path}`)
  }
  const clipOfOther = async () => {
    const { token } = await service.newToken()
    return idIn(await service.readyAlike(newGif(), [], { token }))
  }
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => request(id, 20 + n)))
  const queued = Array(2).fill('202 undefined')
  expect(answers.map(codeOf).sort()).toEqual([...queued, ...Array(6).fill('503 busy')])
  expect(answers.filter(({ status }) => status === 503).every(({ headers }) => headers.has('retry-after'))).toBe(true)
  expect(await rows(service)).toHaveLength(2)
  // Others fill the queue, beyond whose limit each has one.
  const [second, third] = [await clipOfOther(), await clipOfOther()]
  const requests = [
    [second, 16],
    [second, 17],
    [second, 18],
    [third, 16],
    [third, 17],
    [second, 16],
  ] as const
  const codes = []
  for (const [clipId, width] of requests) codes.push(codeOf(await request(clipId, width)))
  expect(codes).toEqual([...queued, '503 busy', '202 undefined', '503 busy', '202 undefined'])
  await service.close()
})

test('a killed job leaves nothing, and the next attempt makes the variant', async () => {
  const { service, id } = await withoutWorkers()
  const { deps } = service
  expect((await service.get(`/f/${id}/w480.mp4`)).status).toBe(202)
  const before = await stored(service)
  const held = await heldFfmpeg(undefined, { making: 'variant.mp4' })
  const killed = new AbortController()
  const job = await jobOf(service, 'w480.mp4', { signal: killed.signal })
  const making = makeVariantOfSource({ ...deps, tools: held.tools }, job)
  await held.hasBegun()
  killed.abort(new Error('killed'))
  await expect(making).rejects.toThrow('killed')
  expect(await temporary(service)).toEqual([])
  expect(await stored(service)).toEqual(before)
  expect(await rows(service)).toEqual([{ name: 'w480.mp4', state: 'making' }])
  await makeVariantOfSource(deps, await jobOf(service, 'w480.mp4'))
  expect((await service.get(`/f/${id}/w480.mp4`)).status).toBe(200)
  await service.close()
})

test('a still whose process was killed is made by a request a minute later', async () => {
  const service = await startTestService({}, { timeLimits: { otherStillMs: 100 } })
  const id = idIn(await service.ready(await clip('low.mp4')))
  await service.deps.pool.query(
    `insert into variants (source_id, name, state, extension, claimed_at, used_at)
      select id, 'w160.jpg', 'making', 'jpg', $1, $1 from sources`,
    [service.clock.now()],
  )
  expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(202)
  service.clock.advance({ seconds: 61 })
  expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
  await service.close()
})

test('requests at once for a still that cannot be made share one attempt, and the next hour repeats none', async () => {
  const tools = { ...unboxedTools }
  const service = await startTestService({}, { tools })
  const id = idIn(await service.ready(await clip('low.mp4')))
  const mayFail = join(await mkdtemp(join(tmpdir(), 'may-fail-')), 'now')
  const failing = await programThat(`until [ -e '${mayFail}' ]; do sleep 0.02; done; exit 1`)
  tools.ffmpeg = { ...unboxedTools.ffmpeg, path: failing }
  const joins = vi.spyOn(service.deps.stillsInWork, 'get')
  const requests = Array.from({ length: 30 }, () => service.get(`/f/${id}/t0.jpg`))
  // A request that comes after the failure gets its stored result.
  await expect.poll(() => joins.mock.calls.length).toBe(30)
  await writeFile(mayFail, '')
  const answers = await Promise.all(requests)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([500]))
  expect(await rows(service)).toEqual([{ name: 't0.jpg', state: 'failed' }])
  expect((await service.get(`/f/${id}/t0.jpg`)).status).toBe(503)
  await service.close()
})

test('a still whose ffmpeg is killed or ends at its time limit is made by a request a minute later', async () => {
  const tools = { ...unboxedTools }
  const service = await startTestService({}, { tools, timeLimits: { otherStillMs: 100 } })
  const id = idIn(await service.ready(await clip('low.mp4')))
  const path = `/f/${id}/t0.jpg`
  tools.ffmpeg = { ...unboxedTools.ffmpeg, path: await programThat('kill -9 $$') }
  const answer = await service.get(path)
  expect([codeOf(answer), answer.headers.get('retry-after')]).toEqual(['503 unavailable', '60'])
  tools.ffmpeg = unboxedTools.ffmpeg
  expect((await service.get(path)).status).toBe(202)
  service.clock.advance({ seconds: 61 })
  expect((await service.get(path)).status).toBe(200)
  await service.close()
})

/** A service with a ready clip whose addresses may have one variant an hour made; `spent` has had its own. */
async function withSpentLimit() {
  const settings = { MEDIA_RATE_LIMIT_HEADER: 'x-real-ip', MEDIA_RATE_LIMIT_VARIANTS: '1/1h' }
  const service = await startTestService(settings)
  const id = idIn(await service.ready(await clip('low.mp4')))
  const askFor = (name: string, address: string) => service.get(`/f/${id}/${name}`, { 'x-real-ip': address })
  const still = { spent: () => askFor('t1.jpg', '203.0.113.7'), other: () => askFor('t1.jpg', '203.0.113.8') }
  expect((await askFor('t0.jpg', '203.0.113.7')).status).toBe(200)
  const joins = vi.spyOn(service.deps.stillsInWork, 'get')
  const secondWaits = () => expect.poll(() => joins.mock.results.map(({ value }) => typeof value)).toContain('object')
  return { service, still, secondWaits }
}

test('an address over its limit gets a still that another one has made meanwhile', async () => {
  const { service, still, secondWaits } = await withSpentLimit()
  const held = await heldFfmpeg()
  service.deps.tools = held.tools
  const first = still.other()
  await held.hasBegun()
  const second = still.spent()
  await secondWaits()
  await held.release()
  expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200])
  await service.close()
})

test('the limit of one address is not that of another that waits for the same still', async () => {
  const { service, still, secondWaits } = await withSpentLimit()
  const { limits } = service.deps
  const count = limits.countVariant
  const [counting, mayCount] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  vi.spyOn(limits, 'countVariant').mockImplementationOnce(async (request) => {
    counting.resolve()
    await mayCount.promise
    await count(request)
  })
  const first = still.spent()
  await counting.promise
  const second = still.other()
  await secondWaits()
  mayCount.resolve()
  expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([429, 200])
  await service.close()
})

test('a variant whose job was lost is queued again by a request after housekeeping', async () => {
  const { service, id } = await withoutWorkers()
  const { pool } = service.deps
  const path = `/f/${id}/w480.mp4`
  expect((await service.get(path)).status).toBe(202)
  service.clock.advance({ seconds: 61 })
  await cleanUp(service.deps)
  // Its job waits: nothing was lost.
  expect(await rows(service)).toEqual([{ name: 'w480.mp4', state: 'making' }])
  await pool.query(`delete from media_queue.job where name = 'variants'`)
  await cleanUp(service.deps)
  expect(await rows(service)).toEqual([])
  expect((await service.get(path)).status).toBe(202)
  expect((await pool.query(`select from media_queue.job where name = 'variants'`)).rows).toHaveLength(1)
  await service.close()
})

test('a full disk refuses a still for a minute and keeps no claim; a job gives its claim up after its attempts', async () => {
  const { service, id } = await withoutWorkers()
  const { deps } = service
  const { ffmpeg } = deps.tools
  const full = await programThat('echo No space left on device >&2; exit 1')
  deps.tools = { ...deps.tools, ffmpeg: { ...ffmpeg, path: full } }
  const answer = await service.get(`/f/${id}/t1.jpg`)
  expect([codeOf(answer), answer.headers.get('retry-after')]).toEqual(['503 unavailable', '60'])
  expect(await rows(service)).toEqual([])
  expect(await temporary(service)).toEqual([])

  expect((await service.get(`/f/${id}/w480.mp4`)).status).toBe(202)
  await expect(makeVariantOfSource(deps, await jobOf(service, 'w480.mp4'))).rejects.toThrow()
  expect(await rows(service)).toEqual([{ name: 'w480.mp4', state: 'making' }])
  await makeVariantOfSource(deps, await jobOf(service, 'w480.mp4', lastAttempt))
  expect(await rows(service)).toEqual([])

  deps.tools = { ...deps.tools, ffmpeg }
  expect((await service.get(`/f/${id}/t1.jpg`)).status).toBe(200)
  expect((await service.get(`/f/${id}/w480.mp4`)).status).toBe(202)
  await makeVariantOfSource(deps, await jobOf(service, 'w480.mp4'))
  expect((await service.get(`/f/${id}/w480.mp4`)).status).toBe(200)
  await service.close()
})

test.each(['copyTo', 'put'] as const)(
  'while the storage is unavailable (%s) stills get 503, and are made afterwards',
  async (method) => {
    const service = await startTestService()
    const { deps } = service
    const id = idIn(await service.ready(await clip('low.mp4')))
    const { blobs } = deps
    deps.blobs = { ...blobs, [method]: () => Promise.reject(new StorageUnavailable('away')) }
    const answer = await service.get(`/f/${id}/w160.jpg`)
    expect(codeOf(answer)).toBe('503 unavailable')
    expect(answer.headers.get('cache-control')).not.toContain('immutable')
    expect(await rows(service)).toEqual([])
    deps.blobs = blobs
    expect((await service.get(`/f/${id}/w160.jpg`)).status).toBe(200)
    await service.close()
  },
)

test('a variant that cannot be made is refused for an hour, and then tried again', async () => {
  const { service, id } = await withoutWorkers()
  const { deps } = service
  const path = `/f/${id}/w480.mp4`
  await service.get(path)
  const broken = withFfmpeg(deps, await programThat('echo nonsense >&2; exit 1'))
  await makeVariantOfSource(broken, await jobOf(service, 'w480.mp4', lastAttempt))
  const answer = await service.get(path)
  expect([codeOf(answer), answer.headers.get('retry-after')]).toEqual(['503 unavailable', '3600'])
  service.clock.advance({ seconds: 3_601 })
  await cleanUp(deps)
  expect((await service.get(path)).status).toBe(202)
  await makeVariantOfSource(deps, await jobOf(service, 'w480.mp4'))
  expect((await service.get(path)).status).toBe(200)
  await service.close()
})

test.each(['gif', 'mp4'])(
  'a clip that fits in no way is refused with the fewest bytes of three builds (%s)',
  async (ending) => {
    const { tools, runs } = await countingFfmpeg()
    const { service, id } = await withoutWorkers()
    const { deps } = service
    await deps.pool.query('update renditions set bytes = 2000001')
    const path = `/f/${id}/max2m.${ending}`
    expect((await service.get(path)).status).toBe(202)
    const { data, ...job } = await jobOf(service, `max2m.${ending}`)
    const tiny = { ...data, variant: { ...data.variant, maxBytes: 300 } }
    await makeVariantOfSource({ ...deps, tools }, { ...job, data: tiny })
    const answer = await service.get(path)
    expect(codeOf(answer)).toBe('422 cannot_fit')
    expect(answer.body.error.details.smallest).toBeGreaterThan(300)
    expect(await runs(ending === 'gif' ? 'rawvideo' : 'variant.mp4')).toBe(3)
    expect(await temporary(service)).toEqual([])
    await service.close()
  },
)

test('a clip that is deleted while its variant is made keeps no file of it', async () => {
  const { service, id } = await withoutWorkers()
  const { deps, clock } = service
  await service.get(`/f/${id}/w480.mp4`)
  const held = await heldFfmpeg(undefined, { making: 'variant.mp4' })
  const making = makeVariantOfSource({ ...deps, tools: held.tools }, await jobOf(service, 'w480.mp4'))
  await held.hasBegun()
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  clock.advance({ seconds: 601 })
  await cleanUp(deps)
  expect((await service.countRows()).sources).toBe(0)
  await held.release()
  await making
  for (let n = 0; n < 2; n++) {
    clock.advance({ seconds: 601 })
    await cleanUp(deps)
  }
  expect(await stored(service)).toEqual([])
  await service.close()
})

test('the stills of one address leave a slot to others', async () => {
  const held = await heldFfmpeg(undefined, { making: 'setsar=1,format=rgb24 -frames:v 1' })
  const service = await startTestService({ MEDIA_RATE_LIMIT_HEADER: 'x-real-ip' }, { tools: held.tools })
  const id = idIn(await service.ready(await clip('low.mp4')))
  const from = (address: string, name: string) => service.get(`/f/${id}/${name}`, { 'x-real-ip': address })
  const stranger = Promise.all(['t0.jpg', 't0.5.jpg', 't1.jpg'].map((name) => from('203.0.113.7', name)))
  await held.hasBegun()
  await expect.poll(() => service.deps.stills.taken()).toEqual({ used: 1, waiting: 2 })
  expect((await from('203.0.113.8', 'w160.jpg')).status).toBe(200)
  await held.release()
  expect((await stranger).map(({ status }) => status)).toEqual([200, 200, 200])
  await service.close()
})

test('blobs check counts variants; a lost one costs no clip and is made again', async () => {
  const service = await startTestService()
  const { deps } = service
  const id = idIn(await service.ready(await clip('low.mp4')))
  const etag = (await service.get(`/f/${id}/w160.jpg`)).headers.get('etag')
  const check = async (fix: boolean) => {
    const findings: Finding[] = []
    await checkBlobs(deps, { deep: true, fix, report: (finding) => findings.push(finding) })
    return findings
  }
  expect(await check(false)).toEqual([])
  const sha256 = etag?.replaceAll('"', '') ?? ''
  await deps.blobs.delete({ sha256, extension: 'jpg' })
  expect(await check(true)).toEqual([{ kind: 'row_without_blob', file: `${sha256}.jpg`, fixed: true }])
  expect((await service.get(`/f/${id}.jpg`)).status).toBe(200)
  const again = await service.get(`/f/${id}/w160.jpg`)
  expect([again.status, again.headers.get('etag')]).toEqual([200, etag])
  expect(await check(false)).toEqual([])
  await service.close()
})

test('a clip that loses one of its own files loses its variants with it', async () => {
  const service = await startTestService()
  const { deps } = service
  const id = idIn(await service.ready(await clip('low.mp4')))
  await service.get(`/f/${id}/w160.jpg`)
  const etag = (await service.get(`/f/${id}.mp4`)).headers.get('etag')
  await deps.blobs.delete({ sha256: etag?.replaceAll('"', '') ?? '', extension: 'mp4' })
  await checkBlobs(deps, { deep: false, fix: true, report: () => {} })
  service.clock.advance({ seconds: 2 })
  expect(codeOf(await service.get(`/f/${id}/w160.jpg`))).toBe('404 not_found')
  expect(await rows(service)).toEqual([])
  for (let n = 0; n < 2; n++) {
    service.clock.advance({ seconds: 8 * 86_400 })
    await cleanUp(deps)
  }
  expect(await service.countRows()).toEqual({ clips: 0, sources: 0 })
  expect(await stored(service)).toEqual([])
  await service.close()
})
