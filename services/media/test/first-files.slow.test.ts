// Ways to the first files on which the rest is made as well. The others: first-files.test.ts.
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { clip } from './clips.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { idIn, startTestService } from './service.ts'
import { tusOf } from './tus.ts'
import { bytes as bytesOf, startFarSide } from './upstreams/far-side.ts'
import { startS3Server } from './upstreams/s3-server.ts'

const MP4_FIRST = { prefer: 'wait-for=mp4' }

test('is answered early for an import and a resumable upload, too, and for a second caller with the same bytes', async () => {
  const bytes = await readFile(await clip('fits-short.mp4'))
  const farSide = await startFarSide([])
  const ffmpeg = await heldFfmpeg(undefined, { making: 'out.webm' })
  const service = await startTestService({}, { tools: ffmpeg.tools })
  // Other bytes with the same picture: a box that players skip.
  const variant = (name: string) => Buffer.concat([bytes, Buffer.from([0, 0, 0, 12]), Buffer.from(`free${name}`)])
  farSide.answers({ 'https://clip.mp4': bytesOf(variant('site')) })
  const early = [await service.importFrom({ source: `${farSide.base}/clip.mp4` }, MP4_FIRST)]
  const { begin, send } = tusOf(service)
  const path = await begin(bytes.length)
  early.push(await send(path, 0, bytes, MP4_FIRST), await service.upload(bytes, [], MP4_FIRST))
  for (const { headers } of early) expect(headers.get('x-media-ready')).toBe('jpg, mp4')
  await ffmpeg.release()
  await service.close()
  farSide.close()
})

test('a bucket that is away between the first files of a clip and the rest delays the rest, and changes nothing', async () => {
  const ffmpeg = await heldFfmpeg(undefined, { making: 'out.webm' })
  const s3 = await startS3Server()
  const early = await startTestService(s3.environment, { timeLimits: { storageStartMs: 0 }, tools: ffmpeg.tools })
  const { pool } = early.deps
  const added = await early.upload(await clip('fits-short.mp4'), [], { prefer: 'wait-for=mp4' })
  const files = () => Promise.all(['jpg', 'mp4'].map((kind) => early.get(`/f/${idIn(added)}.${kind}`)))
  const before = await files()
  expect(before.map(({ status }) => status)).toEqual([200, 200])
  await s3.vanish()
  await ffmpeg.release()
  const postponed = async () =>
    (await pool.query("select retry_count from media_queue.job where name = 'transcode' and start_after > now()")).rows
  await expect.poll(postponed).toEqual([{ retry_count: 0 }])
  expect((await files()).map(({ status }) => status)).toEqual([503, 503])
  await s3.comeBack()
  await pool.query('update media_queue.job set start_after = now()')
  const state = async () => (await pool.query('select state from sources')).rows[0].state
  await expect.poll(state).toBe('ready')
  expect((await files()).map(({ bytes }) => bytes)).toEqual(before.map(({ bytes }) => bytes))
  expect((await early.traces()).files).toEqual([])
  await early.close()
  await s3.close()
})
