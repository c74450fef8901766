import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { transcodeSource } from '../src/make/jobs/transcode-source.ts'
import { clip } from './clips.ts'
import { type GifFrame, gif } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { createDatabase, idIn, startTestService, type TestService, test } from './service.ts'

const later = { prefer: 'respond-async' }
/** Other bytes for each width. */
const picture = (width: number) => gif(width, 10, [{ delay: 10 }])
const add = async (service: TestService, token: string, width: number) =>
  (await service.upload(picture(width), [], { ...later, token })).status

/** Processes that share a database share its store. */
const storeOf = ({ blobsDir }: TestService) => ({ MEDIA_BLOBS_DIR: blobsDir, MEDIA_WORK_DIR: join(blobsDir, 'work') })

test('a clip of one token waits for at most two of a token with many waiting, with two workers on one database', async () => {
  const database = await createDatabase()
  const settings = {
    MEDIA_DATABASE_URL: database.url,
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_WORKER_CONCURRENCY: '1',
  }
  const first = await startTestService(settings)
  // A worker of a store of its own would find no original of the other's clips, and their jobs would begin twice.
  const second = await startTestService({ ...settings, ...storeOf(first) })
  const services = [first, second]
  const [many, few] = [await first.newToken(), await first.newToken()]
  for (let n = 0; n < 8; n++) expect(await add(first, many.token, 30 + n)).toBe(201)
  expect(await add(second, few.token, 50)).toBe(201)
  await Promise.all(services.map((service) => service.startWorker()))

  const begun = async () => {
    const sql = `select group_id from media_queue.job where name = 'transcode' and started_on is not null order by started_on`
    return (await first.deps.pool.query(sql)).rows.map(({ group_id }) => group_id)
  }
  await expect.poll(async () => (await begun()).includes(few.id), { interval: 20 }).toBe(true)
  expect((await begun()).indexOf(few.id)).toBeLessThanOrEqual(2)
  for (const service of services.toReversed()) await service.close()
  await database.drop()
})

test('a variant of one token is made while a slow one of another token runs', async () => {
  const { tools, hasBegun, release } = await heldFfmpeg(undefined, { making: 'variant.mp4' })
  const service = await startTestService({}, { tools })
  const other = await service.newToken()
  const path = await clip('low.mp4')
  const slow = idIn(await service.ready(path))
  const quick = idIn(await service.ready(path, [], { token: other.token }))
  const statusOf = async (address: string) => (await service.get(`/f/${address}`)).status
  expect(await statusOf(`${slow}/w480.mp4`)).toBe(202)
  await hasBegun()
  // A second one of the same token waits.
  expect(await statusOf(`${slow}/w320.anim.webp`)).toBe(202)
  expect(await statusOf(`${quick}/w240.gif`)).toBe(202)
  await expect.poll(() => statusOf(`${quick}/w240.gif`)).toBe(200)
  expect(await statusOf(`${slow}/w320.anim.webp`)).toBe(202)
  await release()
  for (const file of ['w480.mp4', 'w320.anim.webp']) await expect.poll(() => statusOf(`${slow}/${file}`)).toBe(200)
  await service.close()
})

test('a variant that waits for a slow one of its token is made for another token whose clip has the same bytes', async () => {
  const { tools, hasBegun, release } = await heldFfmpeg(undefined, { making: 'variant.mp4' })
  const service = await startTestService({}, { tools })
  const other = await service.newToken()
  const path = await clip('low.mp4')
  const [slow, quick] = [idIn(await service.ready(path)), idIn(await service.ready(path, [], { token: other.token }))]
  const statusOf = async (address: string) => (await service.get(`/f/${address}`)).status
  const tenants = async () => (await turnsOf(service, 'variants')).map(([tenant]) => tenant)
  expect(await statusOf(`${slow}/w480.mp4`)).toBe(202)
  await hasBegun()
  for (let n = 0; n < 2; n++) expect(await statusOf(`${slow}/w240.gif`)).toBe(202)
  const [first] = await tenants()
  expect(await tenants()).toEqual([first, first])
  expect(await statusOf(`${quick}/w240.gif`)).toBe(202)
  expect(new Set(await tenants())).toEqual(new Set([first, other.id]))
  await expect.poll(() => statusOf(`${quick}/w240.gif`)).toBe(200)
  // The running one stays its token's.
  expect(await statusOf(`${quick}/w480.mp4`)).toBe(202)
  expect((await tenants())[0]).toBe(first)
  await release()
  await expect.poll(() => statusOf(`${slow}/w480.mp4`)).toBe(200)
  await service.close()
})

/** The order in which a worker begins what waits, by the ids of clips. */
async function orderOf(service: TestService): Promise<string[]> {
  const { rows } = await service.deps.pool.query(
    `select clips.id from media_queue.job join clips on clips.source_id = (data ->> 'sourceId')::uuid
     where name = 'transcode' order by priority desc, created_on`,
  )
  return rows.map(({ id }) => id)
}

test('bytes that two tokens sent take the earlier of their two turns, and use up the turn of the second token', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { token } = await service.newToken()
  const ids = []
  for (let n = 0; n < 6; n++) ids.push(idIn(await service.upload(picture(30 + n), [], later)))
  const again = [
    await service.upload(picture(35), [], { ...later, token }),
    await service.upload(picture(34), [], { ...later, token }),
    // It is next anyway.
    await service.upload(picture(30), [], { ...later, token }),
  ].map(idIn)
  const [first, fifth, sixth] = [
    [ids[0], again[2]],
    [ids[4], again[1]],
    [ids[5], again[0]],
  ]
  const order = await orderOf(service)
  expect(new Set(order.slice(0, 4))).toEqual(new Set([...first, ...sixth]))
  expect(new Set(order.slice(4, 7))).toEqual(new Set([ids[1], ...fifth]))
  await service.close()
})

/** 1.4 KB that a usual machine decodes for half a minute: the frames are one pixel each, on a screen of 16 million. */
const COSTLY_WEIGHT = 8
const costly = gif(4094, 4094, Array<GifFrame>(59).fill({ delay: 10, width: 1, height: 1 }))
/** Turns from one usual clip of a token to its next. */
const USUAL = 3

const turnsOf = async ({ deps }: TestService, queue = 'transcode'): Promise<[tenant: string, turn: number][]> => {
  const sql = `select group_id, -priority as turn from media_queue.job
    where name = $1 order by priority desc, created_on`
  return (await deps.pool.query(sql, [queue])).rows.map(({ group_id, turn }) => [group_id, turn])
}

test('a clip predicted to be costly comes after as many usual clips of others as it costs', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { token } = await service.newToken()
  const late = await service.newToken()
  const send = async (bytes: Buffer, by: string) => idIn(await service.upload(bytes, [], { ...later, token: by }))
  const usual = [await send(picture(30), token)]
  const mine = [await send(costly, service.token), await send(picture(50), service.token)]
  for (let n = 1; n < 10; n++) usual.push(await send(picture(30 + n), token))
  const newcomer = await send(picture(51), late.token)
  const [first, ...others] = usual
  expect(await orderOf(service)).toEqual([
    ...[first, newcomer, ...others.slice(0, COSTLY_WEIGHT - 1)],
    ...[mine[0], others[COSTLY_WEIGHT - 1], mine[1], others[COSTLY_WEIGHT]],
  ])
  await service.close()
})

test('bytes cost a token that moves them forward their predicted time, and again after a lost job', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps, token } = service
  const [one, two] = [await service.newToken(), await service.newToken()]
  const send = async (bytes: Buffer, by: string) =>
    expect((await service.upload(bytes, [], { ...later, token: by })).status).toBe(201)
  await send(picture(30), token)
  for (let n = 0; n < 3; n++) await send(picture(40 + n), one.token)
  await send(costly, one.token)
  const first = 1
  const behind = first + 2 * USUAL
  const after = (turn: number) => turn + USUAL * COSTLY_WEIGHT
  expect((await turnsOf(service)).at(-1)).toEqual([one.id, after(behind)])

  await send(costly, two.token)
  await send(picture(50), two.token)
  const moved = [first, after(first - USUAL), after(first - USUAL) + USUAL]
  expect((await turnsOf(service)).slice(-2)).toEqual(moved.slice(1).map((turn) => [two.id, turn]))

  await deps.pool.query(`delete from media_queue.job where group_id = $1`, [two.id])
  service.clock.advance({ seconds: 300 })
  await cleanUp(deps)
  // The source is still the first token's.
  expect((await turnsOf(service)).at(-1)).toEqual([one.id, after(behind)])
  await service.close()
})

test('variants of a long clip cost its token more turns than those of a short one', async () => {
  const { tools, hasBegun, release } = await heldFfmpeg(undefined, { making: 'variant.mp4' })
  const service = await startTestService({}, { tools })
  const id = idIn(await service.ready(await clip('low.mp4')))
  const request = async (file: string) => expect((await service.get(`/f/${id}/${file}`)).status).toBe(202)
  await request('w480.mp4')
  await hasBegun()
  await request('w240.gif')
  const { rows } = await service.deps.pool.query(
    `update sources set info = info || '{"width":1920,"height":1080,"frames":900}' returning info`,
  )
  expect(rows).toHaveLength(1)
  await request('w320.anim.webp')
  const turns = (await turnsOf(service, 'variants')).map(([, turn]) => turn)
  expect(turns.map((turn) => turn - (turns[0] ?? 0))).toEqual([0, USUAL, USUAL + 14 * USUAL])
  await release()
  await service.close()
})

test('a clip keeps its turn after a full disk or a lost job', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps, token } = service
  const other = await service.newToken()
  for (let n = 0; n < 3; n++) await service.upload(picture(30 + n), [], later)
  await service.upload(picture(40), [], { ...later, token: other.token })
  const turns = async () =>
    (
      await deps.pool.query(
        `select data, group_id, priority from media_queue.job where state = 'created' order by group_id, priority`,
      )
    ).rows
  const before = await turns()
  // The disk is full for every started job.
  const path = join(service.blobsDir, 'ffmpeg')
  await writeFile(path, '#!/bin/sh\necho No space left on device >&2\nexit 1\n', { mode: 0o755 })
  const full = { ...deps, tools: { ...deps.tools, ffmpeg: { ...deps.tools.ffmpeg, path } } }
  const { rows: jobs } = await deps.pool.query(`update media_queue.job set state = 'active' returning id, data`)
  for (const job of jobs) await transcodeSource(full, { ...job, retryCount: 0, signal: new AbortController().signal })
  expect(await turns()).toEqual(before)
  // A newcomer does not overtake waiting clips.
  const late = await service.newToken()
  await service.upload(picture(50), [], { ...later, token: late.token })
  await service.upload(picture(33), [], { ...later, token })
  expect((await turns()).filter(({ group_id }) => group_id === late.id)).toMatchObject([{ priority: -1 }])
  expect((await turns()).at(-1)?.group_id ?? '').not.toBe('')

  await deps.pool.query('delete from media_queue.job')
  service.clock.advance({ seconds: 300 })
  await cleanUp(deps)
  const groups = (await turns()).map(({ group_id }) => group_id)
  expect(groups.filter((id) => id === other.id)).toHaveLength(1)
  expect(groups).not.toContain(null)
  await service.close()
})

test('a token whose files are slow to probe does not hold up the probes of others', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps, token } = service
  const slow = await service.newToken()
  const { promise: hung, resolve: leave } = Promise.withResolvers<void>()
  const looks = Array.from({ length: 102 }, () => deps.probes.run(() => hung, { key: slow.id }))
  expect(await add(service, token, 30)).toBe(201)
  const refused = await service.upload(picture(31), [], { ...later, token: slow.token })
  expect([refused.status, refused.body.error.code]).toEqual([429, 'queue_full'])
  leave()
  await Promise.all(looks)
  expect(await add(service, slow.token, 31)).toBe(201)
  await service.close()
})

test('deleting waiting clips frees no queue share: other tokens are let in, and no deleted clip is transcoded', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUEUE_LIMIT: '4' })
  const other = await service.newToken()
  const addAndDelete = async (width: number) => {
    const added = await service.upload(picture(width), [], later)
    if (added.status !== 201) return added.body.error.code
    return (await service.call('DELETE', `/media/${idIn(added)}`, { headers: { token: service.token } })).status
  }
  const statuses = []
  for (let n = 0; n < 4; n++) statuses.push(await addAndDelete(30 + n))
  expect(statuses).toEqual([204, 204, 'queue_full', 'queue_full'])
  const kept = await service.upload(picture(50), [], { ...later, token: other.token })
  expect(kept.status).toBe(201)
  await service.startWorker()
  const stateOf = async () => (await service.get(`/media/${idIn(kept)}`, { token: other.token })).body.success.state
  await expect.poll(stateOf).toBe('ready')
  // Deleted clips leave neither source nor original; their turns came first. Housekeeping deletes the other original.
  await expect.poll(() => service.traces()).toMatchObject({ sources: 1, files: { length: 5 } })
  expect(await addAndDelete(34)).toBe(204)
  await service.close()
})

test('a token that filled the queue gets 503, a token without waiting clips does not', async () => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_QUEUE_LIMIT: '2',
    MEDIA_QUEUE_PER_TOKEN: '2',
  })
  const others = await Promise.all([1, 2, 3].map(() => service.newToken()))
  const [one, two, three] = others.map(({ token }) => token) as [string, string, string]
  const statuses = []
  const calls = [service.token, service.token, service.token, one, one, two, three]
  for (const [n, token] of calls.entries()) statuses.push(await add(service, token, 30 + n))
  expect(statuses).toEqual([201, 201, 503, 201, 503, 201, 503])
  await service.close()
})
