import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect } from 'vitest'
import { checkBlobs, type Finding } from '../src/check/check-blobs.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { makeExtrasOfSource } from '../src/jobs/add-extras.ts'
import { EXTRAS_QUEUE } from '../src/jobs/extras-queue.ts'
import { TRANSCODE_QUEUE } from '../src/jobs/transcode-queue.ts'
import { clip, embeddedTools, tools, written } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { inspect } from './inspect.ts'
import { type Answer, idIn, startTestService, type TestService, test } from './service.ts'

const sizesOf = async (service: TestService, answer: Answer) =>
  (await service.get(`/media/${idIn(answer)}`, { token: service.token })).body.success.sizes
const kindsOf = async (service: TestService, answer: Answer) => Object.keys(await sizesOf(service, answer))
const postponed = async ({ deps }: TestService) =>
  (
    await deps.pool.query(
      `select data->'postponed' as times from media_queue.job where name = 'extras' and state = 'created'`,
    )
  ).rows
const jobOf = (sourceId: string) => ({
  ...{ id: 'job', retryCount: 0, signal: new AbortController().signal },
  data: { sourceId },
})
const jobsOver = ({ deps }: TestService) => expect.poll(() => deps.queue.depth(TRANSCODE_QUEUE.name)).toBe(0)
const sourceIn = async ({ deps }: TestService) => (await deps.pool.query('select id from sources')).rows[0].id as string

test('an AV1 copy and a WebP poster follow in the background, are offered first, and go with the clip', async ({
  skip,
}) => {
  if (!tools.ffmpeg.av1Encoder) skip('this ffmpeg has no libsvtav1')
  const service = await startTestService({ MEDIA_EXTRAS: 'true' }, { tools })
  const answer = await service.upload(await clip('sound.mp4'))
  expect(Object.keys(answer.body.success.files)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  const all = ['av1', 'gif', 'jpg', 'mp4', 'webm', 'webp']
  await expect.poll(() => kindsOf(service, answer), { interval: 100 }).toEqual(all)

  const id = idIn(answer)
  const [av1, webp] = [await service.get(`/f/${id}.av1.mp4`), await service.get(`/f/${id}.webp?download=1`)]
  const sizes = await sizesOf(service, answer)
  expect([av1.status, av1.headers.get('content-type'), av1.bytes.length]).toEqual([200, 'video/mp4', sizes.av1.bytes])
  expect(sizes.av1.bytes).toBeLessThan(Math.min(sizes.mp4.bytes, sizes.webm.bytes))
  const { streams, format } = await inspect(await written('extra.av1.mp4', av1.bytes))
  expect(streams).toMatchObject([
    { codec_name: 'av1', width: 160, height: 120, nb_read_frames: '50', pix_fmt: 'yuv420p' },
    { codec_name: 'aac' },
  ])
  expect(Number(format.duration)).toBeCloseTo(2, 1)
  expect(JSON.stringify(format)).not.toContain('Secret')
  expect(webp.headers.get('content-disposition')).toBe(`attachment; filename="${id}.webp"`)
  expect(await sharp(webp.bytes).metadata()).toMatchObject({ format: 'webp', width: 160, height: 120 })

  for (const path of [`/gif/${id}`, `/embed/${id}`]) {
    const { text } = await service.get(path)
    const offered = [...text.matchAll(/<source src="[^"]*\/f\/\w+\.([\w.]+)"/g)].map(([, ending]) => ending)
    expect(offered.slice(0, 3)).toEqual(['av1.mp4', 'webm', 'mp4'])
    expect(text).toContain(`poster="https://files.example/f/${id}.webp"`)
  }

  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect((await service.get(`/f/${id}.av1.mp4`)).status).toBe(410)
  for (let round = 0; round < 2; round++) {
    service.clock.advance({ seconds: 3_600 })
    await cleanUp(service.deps)
  }
  expect((await service.traces()).files).toEqual([])
  await service.close()
})

test('a clip is ready only with the job of its extras: no crash comes between', async () => {
  const service = await startTestService({ MEDIA_EXTRAS: 'true' })
  const { pool } = service.deps
  await pool.query(`
    create function slow_extras() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return new; end $$;
    create trigger slow_extras before insert on media_queue.job for each row when (new.name = 'extras')
      execute function slow_extras()`)
  await service.upload(gif(33, 20, [{ delay: 10 }]))
  const { rows } = await pool.query(
    `select distinct data->>'sourceId' as source from media_queue.job where name = 'extras'`,
  )
  expect(rows).toEqual([{ source: await sourceIn(service) }])
  await service.close()
})

test('an ffmpeg without the encoder, and a clip that is too small for it, leave the WebP poster', async () => {
  const withoutEncoder = { ...embeddedTools, ffmpeg: { ...embeddedTools.ffmpeg, av1Encoder: null } }
  const service = await startTestService({ MEDIA_EXTRAS: 'true' }, { tools: withoutEncoder })
  const answer = await service.upload(gif(30, 20, [{ delay: 10 }]))
  await expect.poll(() => kindsOf(service, answer)).toEqual(['gif', 'jpg', 'mp4', 'webm', 'webp'])
  expect((await service.get(`/f/${idIn(answer)}.av1.mp4`)).status).toBe(404)
  await service.close()
})

test('nothing is made beside the four files where nobody asked for it', async ({ service }) => {
  const answer = await service.upload(gif(31, 20, [{ delay: 10 }]))
  await jobsOver(service)
  expect(await service.deps.queue.depth(EXTRAS_QUEUE.name)).toBe(0)
  expect(await kindsOf(service, answer)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  expect((await service.get(`/f/${idIn(answer)}.webp`)).status).toBe(404)
})

test('extras give way to clips: before they begin and while they are made; a full queue drops them', async () => {
  const settings = { MEDIA_EXTRAS: 'true', MEDIA_QUEUE_LIMIT: '1' }
  const service = await startTestService(settings, {
    tools: { ...embeddedTools, ffmpeg: { ...embeddedTools.ffmpeg, av1Encoder: 'libsvtav1' } },
  })
  const { deps } = service
  const answer = await service.upload(await clip('tiny.mp4'))
  // Too small for AV1, so done at once.
  await expect.poll(() => kindsOf(service, answer)).toContain('webp')
  await deps.pool.query(`update sources set extras = '{}'; delete from renditions where kind = 'webp'`)
  const job = jobOf(await sourceIn(service))

  const end = deps.atWork.beginClip()
  await makeExtrasOfSource(deps, job)
  expect(await postponed(service)).toEqual([{ times: 1 }])
  end()

  const slow = join(service.blobsDir, 'ffmpeg')
  await writeFile(slow, '#!/bin/sh\nexec sleep 607\n', { mode: 0o755 })
  const ffmpeg = { ...deps.tools.ffmpeg, path: slow }
  await deps.pool.query(`update renditions set width = 64, height = 64`)
  const made = makeExtrasOfSource({ ...deps, tools: { ...deps.tools, ffmpeg } }, job)
  await expect.poll(async () => (await service.listFiles()).some((path) => path.endsWith('out.webp'))).toBe(true)
  deps.atWork.beginClip()()
  await made
  expect(await postponed(service)).toEqual([{ times: 1 }, { times: 1 }])

  await service.upload(gif(32, 20, [{ delay: 10 }]))
  await jobsOver(service)
  const { rows } = await deps.pool.query(
    `select distinct data->>'sourceId' as source from media_queue.job where name = 'extras'`,
  )
  expect(rows).toEqual([{ source: job.data.sourceId }])
  expect(await postponed(service)).toHaveLength(2)
  await service.close()
})

test('a lost extra costs the extras of its clips, and no clip', async () => {
  const service = await startTestService({ MEDIA_EXTRAS: 'true' })
  const bytes = await clip('tiny.mp4')
  const [first, second] = [await service.upload(bytes), await service.upload(bytes)]
  await expect.poll(() => kindsOf(service, first)).toContain('webp')
  await service.traces()
  const { deps } = service
  const { rows } = await deps.pool.query(`select encode(sha256, 'hex') as sha256 from renditions where kind = 'webp'`)
  await deps.blobs.delete({ sha256: rows[0].sha256, extension: 'webp' })
  const check = async (fix: boolean) => {
    const findings: Finding[] = []
    await checkBlobs(deps, { deep: true, fix, report: (finding) => findings.push(finding) })
    return findings
  }
  const lost = { kind: 'row_without_blob', file: `${rows[0].sha256}.webp` }
  expect(await check(true)).toEqual([{ ...lost, fixed: true }])
  for (const answer of [first, second]) {
    expect(await kindsOf(service, answer)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
    expect((await service.get(`/f/${idIn(answer)}.webp`)).status).toBe(404)
    expect((await service.get(`/f/${idIn(answer)}.mp4`)).status).toBe(200)
    expect((await service.get(`/gif/${idIn(answer)}`)).text).not.toContain('.webp')
  }
  expect(await check(false)).toEqual([])
  await service.close()
})
