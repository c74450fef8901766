// Failures that take the time they take: limits on programs that hang, and a PostgreSQL that is stopped and started.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { expect, test } from 'vitest'
import { clip, tools } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { programThat } from './program.ts'
import { idIn, startTestService } from './service.ts'

test('a file whose transcode never ends is 504, and leaves nothing', async () => {
  const path = await programThat('exec sleep 60')
  const limiters = { ...tools.limiters, wallFactor: 0.05 }
  const service = await startTestService({}, { tools: { ...tools, ffprobe: { ...tools.ffprobe, path }, limiters } })
  const answer = await service.upload(await readFile(await clip('small.mp4')))
  expect([answer.status, answer.body.error.code]).toEqual([504, 'processing_timeout'])
  expect(await service.listFiles()).toEqual([])
  expect(await service.countRows()).toEqual({ clips: 0, sources: 0 })
  await service.close()
})

test('a clip whose steps each end late and fail is given up midway, and leaves nothing', async () => {
  const path = await programThat('sleep 2; exit 1')
  const slow = { ...tools, ffmpeg: { ...tools.ffmpeg, path } }
  const service = await startTestService({}, { tools: slow, timeLimits: { transcodeMs: 2_500 } })
  const answer = await service.upload(await readFile(await clip('small.mp4')))
  expect([answer.status, answer.body.error.code]).toEqual([504, 'processing_timeout'])
  expect(await service.traces()).toEqual({ files: [], clips: 0, sources: 0 })
  await service.close()
})

test('a restarted PostgreSQL costs 503 for the moment and no restart of the service', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'restarted-postgres-'))
  const first = await startEmbeddedPostgres({ dataDir, durable: false })
  const service = await startTestService({ MEDIA_DATABASE_URL: first.url, MEDIA_MIGRATE_ON_START: 'true' })
  const id = idIn(await service.upload(await clip('plain.gif')))
  const seen = new Set<number>()
  let isRunning = true
  const load = (async () => {
    while (isRunning) {
      const answers = await Promise.all([
        service.get(`/media/${id}`, { token: service.token }),
        service.get(`/f/${id}.jpg`),
        service.importFrom({ source: 'http://127.0.0.1:9/' }),
      ])
      for (const { status, headers, body } of answers) {
        seen.add(status)
        if (status >= 500)
          expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'unavailable', '1'])
      }
    }
  })()
  await expect.poll(() => [...seen].toSorted()).toEqual([200, 424])
  await first.stop()
  await expect.poll(async () => (await service.get('/health/ready')).status).toBe(503)
  await expect.poll(() => seen.has(503)).toBe(true)
  expect((await service.get('/health/live')).status).toBe(200)
  const second = await startEmbeddedPostgres({ dataDir, durable: false, port: first.port })
  await expect.poll(async () => (await service.get(`/f/${id}.jpg`)).status).toBe(200)
  isRunning = false
  await load
  expect(seen).toEqual(new Set([200, 424, 503]))
  // The queue and the connection for results are there again as well.
  expect((await service.upload(gif(80, 20, [{ delay: 10 }]))).status).toBe(201)
  await service.close()
  await second.stop()
  await rm(dataDir, { recursive: true, force: true })
})
