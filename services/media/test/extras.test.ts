import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { expect } from 'vitest'
import { checkBlobs, type Finding } from '../src/flows/check/check-blobs.ts'
import { makeExtrasOfSource } from '../src/make/jobs/add-extras.ts'
import { EXTRAS_QUEUE, TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { clip, unboxedTools } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, idIn, startTestService, type TestService, test } from './service.ts'

const kindsOf = async (service: TestService, answer: Answer) =>
  Object.keys((await service.get(`/media/${idIn(answer)}`, { token: service.token })).body.success.sizes)
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

test('a clip is ready only with the job of its extras: no crash comes between', async () => {
  const service = await startTestService({ MEDIA_EXTRAS: 'true' })
  const { pool } = service.deps
  await pool.query(`
    create function held_extras() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(33); return new; end $$;
    create trigger held_extras before insert on media_queue.job for each row when (new.name = 'extras')
      execute function held_extras()`)
  const holder = await pool.connect()
  await holder.query('select pg_advisory_lock(33)')
  const upload = service.upload(gif(33, 20, [{ delay: 10 }]))
  await expect.poll(() => countLockWaits(pool)).toBe(1)
  expect((await pool.query('select state from sources')).rows).not.toEqual([{ state: 'ready' }])
  await holder.query('select pg_advisory_unlock(33)')
  holder.release()
  await upload
  const { rows } = await pool.query(
    `select distinct data->>'sourceId' as source from media_queue.job where name = 'extras'`,
  )
  expect(rows).toEqual([{ source: await sourceIn(service) }])
  await service.close()
})

test('an ffmpeg without the encoder, and a clip that is too small for it, leave the WebP poster', async () => {
  const withoutEncoder = { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, av1Encoder: null } }
  const service = await startTestService({ MEDIA_EXTRAS: 'true' }, { tools: withoutEncoder })
  const answer = await service.upload(gif(30, 20, [{ delay: 10 }]))
  await expect.poll(() => kindsOf(service, answer)).toEqual(['gif', 'jpg', 'mp4', 'webm', 'webp'])
  expect((await service.get(`/f/${idIn(answer)}.av1.mp4`)).status).toBe(404)
  await service.close()
})

test('only the four files are made unless extras are enabled', async ({ service }) => {
  const answer = await service.upload(gif(31, 20, [{ delay: 10 }]))
  await jobsOver(service)
  expect(await service.deps.queue.depth(EXTRAS_QUEUE.name)).toBe(0)
  expect(await kindsOf(service, answer)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  expect((await service.get(`/f/${idIn(answer)}.webp`)).status).toBe(404)
})

test('extras yield to clips before they start and while they run; a full queue drops them', async () => {
  const settings = { MEDIA_EXTRAS: 'true', MEDIA_QUEUE_LIMIT: '1' }
  const service = await startTestService(settings, {
    tools: { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, av1Encoder: 'libsvtav1' } },
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
