// A bucket that is away while a variant is made, or while expired clips are deleted: neither is lost, and nothing
// expired comes back.
import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { parseFixedVariant, type Variant } from '../src/core/variants/variant.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { makeVariantOfSource } from '../src/make/jobs/add-variant.ts'
import { VARIANTS_QUEUE } from '../src/make/jobs/queues.ts'
import { transcodeSource } from '../src/make/jobs/transcode-source.ts'
import { clip } from './clips.ts'
import { gif, withComment } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { idIn, startTestService, type TestService } from './service.ts'
import { type S3Server, startS3Server } from './upstreams/s3-server.ts'

let s3: S3Server
let service: TestService

beforeEach(async ({ onTestFinished }) => {
  s3 = await startS3Server()
  const settings = { ...s3.environment, MEDIA_WORKERS_ENABLED: 'false' }
  service = await startTestService(settings, { timeLimits: { storageStartMs: 0 } })
  onTestFinished(async () => {
    await service.close()
    await s3.close()
  })
})

/** Uploads a clip and makes its files, as a worker would. */
async function upload(file: Uint8Array, fields: [string, string][] = []): Promise<string> {
  const { deps } = service
  const added = await service.upload(file, fields, { prefer: 'respond-async' })
  const { rows } = await deps.pool.query(`select id from sources where state = 'processing'`)
  for (const { id: sourceId } of rows) {
    await transcodeSource(deps, { id: randomUUID(), data: { sourceId }, retryCount: 0, ...running() })
  }
  return idIn(added)
}

const running = () => ({ signal: new AbortController().signal })
const states = async () => (await service.deps.pool.query('select state from variants')).rows.map(({ state }) => state)
const stored = async () => {
  let files = 0
  for await (const _file of service.deps.blobs.list()) files++
  return files
}

const FRAMES = [{ delay: 10 }, { delay: 10, color: 1 as const }]

test('a bucket that is away when a variant is to be stored ends its claim after the last attempt, and no file of it stays', async () => {
  const { deps } = service
  const path = `/f/${idIn(await service.ready(await clip('low.mp4')))}/w480.mp4`
  const { rows } = await deps.pool.query('select id from sources')
  const variant = parseFixedVariant('w480.mp4') as Variant
  const data = { sourceId: rows[0].id as string, name: 'w480.mp4', variant }
  const attempt = async (retryCount: number) => {
    const held = await heldFfmpeg(undefined, { making: 'variant.mp4' })
    const making = makeVariantOfSource(
      { ...deps, tools: held.tools },
      { id: randomUUID(), data, retryCount, ...running() },
    )
    await held.hasBegun()
    await s3.vanish()
    await held.release()
    return making.finally(() => s3.comeBack())
  }
  expect((await service.get(path)).status).toBe(202)
  const before = await stored()
  await expect(attempt(0)).rejects.toThrow()
  expect(await states()).toEqual(['making'])
  await attempt(VARIANTS_QUEUE.retryLimit)
  expect(await states()).toEqual([])
  expect(await stored()).toBe(before)
  expect((await service.traces()).files).toEqual([])

  expect((await service.get(path)).status).toBe(202)
  await makeVariantOfSource(deps, { id: randomUUID(), data, retryCount: 0, ...running() })
  expect((await service.get(path)).status).toBe(200)
  expect(await stored()).toBe(before + 1)
})

test('expired clips stay gone while their bucket is away, and their files are deleted after it: those of other clips stay', async () => {
  const { deps, clock } = service
  const [alone, shared] = [gif(41, 20, FRAMES), gif(42, 20, FRAMES)]
  const expiring = [await upload(alone, [['expires_in', '1h']]), await upload(shared, [['expires_in', '1h']])]
  const kept = await upload(withComment(shared, 'again'))
  const statusesOf = (id: string) =>
    Promise.all(['gif', 'jpg', 'mp4', 'webm'].map(async (kind) => (await service.get(`/f/${id}.${kind}`)).status))
  // Clips are deleted in one round, their sources in the next, their files in the third.
  await s3.vanish()
  for (const seconds of [3_601, 601, 601]) {
    clock.advance({ seconds })
    await cleanUp(deps)
    for (const id of expiring) expect(await statusesOf(id)).toEqual([410, 410, 410, 410])
  }
  await s3.comeBack()
  const files = async () => (await deps.pool.query('select from blobs')).rowCount
  // No row goes before its file: the originals of three clips, and the files of two.
  expect([await stored(), await files()]).toEqual([11, 11])
  await cleanUp(deps)
  expect([await stored(), await files()]).toEqual([4, 4])
  expect(await statusesOf(kept)).toEqual([200, 200, 200, 200])
  expect(await statusesOf(await upload(alone))).toEqual([200, 200, 200, 200])
})
