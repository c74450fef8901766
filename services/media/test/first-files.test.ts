// A caller who waits for the mp4 alone, of a source whose own streams are the mp4.
import { randomUUID } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import type { TranscodeJob } from '../src/make/jobs/queues.ts'
import { transcodeSource } from '../src/make/jobs/transcode-source.ts'
import { clip, unboxedTools } from './clips.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { idIn, startTestService, type TestService } from './service.ts'

const MP4_FIRST = { prefer: 'wait-for=mp4' }

/** A service whose ffmpeg waits before it makes a webm. */
async function heldService(settings: Record<string, string> = {}) {
  const ffmpeg = await heldFfmpeg(undefined, { making: 'out.webm' })
  return { ffmpeg, service: await startTestService(settings, { tools: ffmpeg.tools }) }
}

const details = async ({ get, token }: TestService, id: string) => (await get(`/media/${id}`, { token })).body.success

test('is answered while the rest is encoded, and page, player, oEmbed, events and files show what there is', async () => {
  const { ffmpeg, service } = await heldService()
  const added = await service.upload(await clip('fits-short.mp4'), [['title', 'Early']], MP4_FIRST)
  expect(added.status).toBe(201)
  expect(Object.fromEntries(added.headers)).toMatchObject({
    'x-media-state': 'processing',
    'preference-applied': 'wait-for=mp4',
    'x-media-ready': 'jpg, mp4',
  })
  const id = idIn(added)
  const file = (kind: string) => service.get(`/f/${id}.${kind}`)
  const [mp4, jpg, gif, webm] = await Promise.all(['mp4', 'jpg', 'gif', 'webm'].map(file))
  expect([mp4, jpg, gif, webm].map((answer) => answer?.status)).toEqual([200, 200, 202, 202])
  expect(await details(service, id)).toMatchObject({ state: 'processing', sizes: { mp4: { copied: true } } })
  expect(Object.keys((await details(service, id)).sizes)).toEqual(['jpg', 'mp4'])

  const page = (await service.get(`/gif/${id}`)).text
  expect(page).toContain(`/f/${id}.mp4" type="video/mp4"`)
  expect(page).toMatch(/property="og:video" content="[^"]*mp4"/)
  expect(page).toContain(`/f/${id}.mp4?download=1`)
  expect(page).not.toMatch(/http-equiv="refresh"|\.webm"|\.gif"|\.gif\?download/)
  expect((await service.get(`/embed/${id}`)).text).toMatch(/<video[\s\S]*\.mp4" type="video\/mp4"/)
  expect((await service.get(`/oembed/${id}`)).body.thumbnail_url).toMatch(/\.jpg$/)

  const events = fetch(`${service.url}/media/${id}/events`, { headers: { token: service.token } })
  const reader = (await events).body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('"mp4"')) text += (await reader?.read())?.value
  expect(text).toContain(`event: file\ndata: {"file":"mp4","bytes":${mp4?.bytes.length}}\n\n`)
  expect(text).toContain(`event: file\ndata: {"file":"jpg","bytes":${jpg?.bytes.length}}\n\n`)

  await ffmpeg.release()
  while (!text.includes('event: ready')) text += (await reader?.read())?.value
  const after = await file('mp4')
  expect(after.bytes.equals(mp4?.bytes ?? Buffer.of())).toBe(true)
  for (const name of ['etag', 'last-modified', 'cache-control']) {
    expect(after.headers.get(name)).toBe(mp4?.headers.get(name))
  }
  expect(await details(service, id)).toMatchObject({ state: 'ready', sizes: { mp4: { copied: true } } })
  expect(Object.keys((await details(service, id)).sizes)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  await service.close()
})

test('without the preference nothing is shown before all is ready', async () => {
  const { ffmpeg, service } = await heldService()
  const id = idIn(await service.upload(await clip('fits-short.mp4'), [], { prefer: 'respond-async' }))
  await ffmpeg.hasBegun()
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(202)
  expect((await service.get(`/gif/${id}`)).text).toContain('http-equiv="refresh"')
  await ffmpeg.release()
  await service.close()
})

test('waits for all files of a source that is encoded, and for the decision on one that is refused', async () => {
  const service = await startTestService()
  const encoded = await service.upload(await clip('plain.mp4'), [], MP4_FIRST)
  expect([encoded.status, encoded.headers.get('x-media-state')]).toEqual([201, 'ready'])
  expect([encoded.headers.get('x-media-ready'), encoded.headers.get('preference-applied')]).toEqual([null, null])
  const refused = await service.upload(await clip('long.mp4'), [], MP4_FIRST)
  expect([refused.status, refused.body.error.code]).toEqual([422, 'duration_exceeded'])
  await service.close()
})

/** Runs the job of the only source by hand. */
async function transcode(
  service: TestService,
  options: { tools?: TestService['deps']['tools']; signal?: AbortSignal },
) {
  const { rows } = await service.deps.pool.query('select id from sources')
  const data: TranscodeJob = { sourceId: rows[0].id, mp4First: true }
  const job = { id: randomUUID(), data, retryCount: 0, signal: options.signal ?? new AbortController().signal }
  return transcodeSource({ ...service.deps, tools: options.tools ?? service.deps.tools }, job)
}

/** Stores the first files, and ends there like a killed worker. */
async function killedAfterFirstFiles() {
  const ffmpeg = await heldFfmpeg(undefined, { making: 'out.webm' })
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(await clip('fits-short.mp4'), [], { prefer: 'respond-async' }))
  const worker = new AbortController()
  const killed = transcode(service, { tools: ffmpeg.tools, signal: worker.signal }).catch(() => {})
  await ffmpeg.hasBegun()
  worker.abort(new Error('killed'))
  await killed
  return { service, id }
}

const references = async ({ deps }: TestService) =>
  (await deps.pool.query('select extension, reference_count from blobs order by extension')).rows.map(
    (row) => `${row.extension} ${row.reference_count}`,
  )

test("a published mp4 stays the same when another worker finishes a killed one's clip, whatever that one makes", async () => {
  const { service, id } = await killedAfterFirstFiles()
  const before = await service.get(`/f/${id}.mp4`)
  const [jpg] = [await service.get(`/f/${id}.jpg`)]
  expect([before.status, jpg.status]).toEqual([200, 200])
  // It encodes the mp4, as if its settings were others.
  const { config } = service.deps
  service.deps.config = { ...config, worker: { ...config.worker, copy: 'never' } }
  await transcode(service, {})
  expect((await details(service, id)).state).toBe('ready')
  expect((await service.get(`/f/${id}.mp4`)).bytes.equals(before.bytes)).toBe(true)
  expect((await service.get(`/f/${id}.jpg`)).bytes.equals(jpg.bytes)).toBe(true)
  expect(await references(service)).toEqual(['gif 1', 'jpg 1', 'mp4 1', 'source 0', 'webm 1'])
  await service.close()
})

test('a clip that fails later takes its first files back', async () => {
  const { service, id } = await killedAfterFirstFiles()
  const path = join(await mkdtemp(join(tmpdir(), 'ffmpeg-')), 'ffmpeg')
  const refuse = 'case "$*" in *out.webm*) exit 1;; esac'
  await writeFile(path, `#!/bin/sh\n${refuse}\nexec '${unboxedTools.ffmpeg.path}' "$@"\n`, { mode: 0o755 })
  await transcode(service, { tools: { ...unboxedTools, ffmpeg: { ...unboxedTools.ffmpeg, path } } })
  expect((await details(service, id)).state).toBe('failed')
  // Other processes know a file for a second (docs/explanation/media/serving-files.md).
  service.deps.knownFiles.evict(id)
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(404)
  expect((await service.get(`/gif/${id}`)).status).toBe(404)
  expect(await references(service)).toEqual(['jpg 0', 'mp4 0'])
  await service.close()
})

test('a clip deleted before it is ready leaves no file behind', async () => {
  const { service, id } = await killedAfterFirstFiles()
  expect((await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })).status).toBe(204)
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(410)
  await transcode(service, {})
  for (const _ of [1, 2]) {
    service.clock.advance({ seconds: 601 })
    await cleanUp(service.deps)
  }
  expect(await service.traces()).toEqual({ files: [], clips: 1, sources: 0 })
  await service.close()
})
