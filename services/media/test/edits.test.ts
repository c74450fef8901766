// Edits through the API: a part, a crop, another speed, no sound, a chosen poster. Exact frames:
// make/transcode/edits.slow.test.ts.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip, clipOf } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, type FormFields, idIn, startTestService, type TestService } from './service.ts'
import { tusOf } from './tus.ts'
import { bytes, startFarSide } from './upstreams/far-side.ts'

let service: TestService
/** Accepts and never makes: no test waits for a worker. */
let accepting: TestService
beforeAll(async () => {
  const settings = { MEDIA_MAX_SOURCE_DURATION: '2m' }
  service = await startTestService(settings)
  accepting = await startTestService({ ...settings, MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => Promise.all([service.close(), accepting.close()]))

const edited = (file: string | Uint8Array, fields: Record<string, string>, at = accepting) =>
  at.upload(file, Object.entries(fields) as FormFields)

const detailsOf = async (answer: Answer, { get, token }: TestService = accepting) =>
  (await get(`/media/${idIn(answer)}`, { token })).body.success

/** 8 s, black for the first half and white for the second. */
const halves = () =>
  clipOf('halves.mp4', [
    ...['-f', 'lavfi', '-i', "nullsrc=s=64x48:r=10:d=8,geq=lum='if(lt(N,40),20,230)':cb=128:cr=128"],
    ...[
      '-f',
      'lavfi',
      '-i',
      'sine=frequency=440:duration=8',
      '-c:v',
      'libx264',
      '-g',
      '10',
      '-pix_fmt',
      'yuv420p',
      '-c:a',
      'aac',
    ],
  ])

test('an upload with an edit is made of the part, and says what was changed and what the source was', async () => {
  const path = await halves()
  const fields = { start: '5', duration: '1.5', crop: '0,0,32,24', speed: '0.5', mute: 'true', poster_at: '1' }
  const answer = await edited(path, fields, service)
  expect(answer.status).toBe(201)
  expect(answer.body.success.meta).toEqual({ duration: '3s', frames: '15', height: '24', width: '32' })
  const details = await detailsOf(answer, service)
  expect(details.edit).toEqual({ start: 5, duration: 1.5, crop: '0,0,32,24', speed: 0.5, mute: true, poster_at: 1 })
  const sha256 = createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
  expect(details.source).toMatchObject({ duration: 8, width: 64, height: 48, sha256, type: 'mp4' })
  expect(details.sizes.mp4).toMatchObject({ width: 32, height: 24 })
  // No file keeps the whole source once the clip is made.
  const { rows } = await service.deps.pool.query("select reference_count from blobs where extension = 'source'")
  expect(rows.every(({ reference_count }) => reference_count === 0)).toBe(true)
})

test.each([
  ['0.5', 0],
  ['1.5', 255],
])('poster_at=%s shows the frame of that time', async (time, luma) => {
  const fields = { start: '3', duration: '2', poster_at: time }
  const { bytes } = await service.get(`/f/${idIn(await edited(await halves(), fields, service))}.jpg`)
  expect(Math.abs(((await sharp(bytes).stats()).channels[0]?.mean ?? -99) - luma)).toBeLessThan(12)
})

test('equal edits of the same bytes share one source, other ones do not, and one without effect is none', async () => {
  const path = await halves()
  const sources = async () => (await accepting.countRows()).sources
  const plain = await edited(path, {})
  const before = await sources()
  expect(
    await detailsOf(await edited(path, { start: '0', speed: '1', crop: '64:48', duration: '60' })),
  ).not.toHaveProperty('edit')
  expect(await sources()).toBe(before)
  await edited(path, { start: '2', end: '4.000' })
  await edited(path, { start: '0:02', duration: '2', crop: '4:3' })
  expect(await sources()).toBe(before + 1)
  await edited(path, { start: '2', duration: '2', mute: '1' })
  await edited(path, { start: '2', duration: '2', crop: '1:1' })
  expect(await sources()).toBe(before + 3)
  expect(await detailsOf(plain)).not.toHaveProperty('edit')
})

test('four equal edits at once share one source', async () => {
  const before = (await accepting.countRows()).sources
  const answers = await Promise.all(
    Array.from({ length: 4 }, async () => edited(await clip('sound.mp4'), { start: '1' })),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(4).fill(201))
  expect((await accepting.countRows()).sources).toBe(before + 1)
})

test('a part of a gif is made of its frames, not of the file', async () => {
  const frames = Array.from({ length: 20 }, (_, at) => ({ delay: 10, color: (at % 2) as 0 | 1 }))
  const answer = await edited(gif(40, 30, frames), { start: '0.5', duration: '1' }, service)
  expect(answer.body.success.meta).toMatchObject({ duration: '1s', frames: '10' })
  const { bytes } = await service.get(`/f/${idIn(answer)}.gif`)
  const { delay = [] } = await sharp(bytes, { animated: true }).metadata()
  expect(delay.reduce((sum, next) => sum + next, 0)).toBe(1000)
  expect(await detailsOf(await edited(gif(41, 30, frames), { mute: 'true' }))).not.toHaveProperty('edit')
})

describe('a source longer than a clip', () => {
  /** 61 s. */
  const minute = () => clip('minute.mp4')

  test('is accepted for a part of it; without one the refusal names the fields', async () => {
    const answer = await edited(await minute(), { start: '0:50', duration: '3' })
    expect(answer.body.success.meta).toMatchObject({ duration: '3s', frames: '15' })
    expect((await detailsOf(answer)).source).toMatchObject({ duration: 61 })
    const refused = await edited(await minute(), {})
    expect([refused.status, refused.body.error.details]).toEqual([
      422,
      { limit: 30, actual: 61, hint: 'start,duration' },
    ])
  })

  test.each([
    [{ start: '20' }, { code: 'duration_exceeded' }],
    [{ start: '20', duration: '31' }, { code: 'duration_exceeded' }],
    [{ start: '20', duration: '16', speed: '0.5' }, { code: 'duration_exceeded' }],
    [{ duration: '120' }, { code: 'duration_exceeded' }],
    [{ crop: '1:1' }, { code: 'duration_exceeded' }],
    [{ start: '61' }, { code: 'edit_out_of_range', param: 'start' }],
    [{ start: '119' }, { code: 'edit_out_of_range', param: 'start' }],
    [{ start: '60.95' }, { code: 'edit_out_of_range', param: 'start' }],
  ] as const)('is refused for %o', async (fields, error) => {
    const { status, body } = await edited(await minute(), fields)
    expect([status, body.error]).toEqual([422, expect.objectContaining(error)])
  })

  test.each([
    [{ start: '31' }, '30s'],
    [{ start: '0', end: '30' }, '30s'],
    [{ start: '59', duration: '20' }, '2s'],
    [{ start: '1', duration: '58', speed: '2' }, '29s'],
    [{ speed: '2.1' }, '29.048s'],
  ] as const)('is cut to the end and measured at its speed (%o)', async (fields, duration) => {
    const { status, body } = await edited(await minute(), fields)
    expect([status, body.success?.meta.duration]).toEqual([201, duration])
  })

  test('is refused over the limit of sources, whatever part is chosen', async () => {
    const path = await clipOf('three-minutes.mp4', ['-f', 'lavfi', '-i', 'color=s=64x48:r=2:d=180', '-c:v', 'libx264'])
    const { status, body } = await edited(path, { start: '1', duration: '1' })
    expect([status, body.error.code, body.error.details]).toEqual([
      422,
      'duration_exceeded',
      { limit: 120, actual: 180 },
    ])
  })
})

test.each([
  [{ start: 'soon' }, 'invalid_field', 'start'],
  [{ start: '1', end: '2', duration: '1' }, 'invalid_field', 'end'],
  [{ crop: '0,0,65,48' }, 'edit_out_of_range', 'crop'],
  [{ crop: '1:99' }, 'edit_out_of_range', 'crop'],
  [{ poster_at: '8' }, 'edit_out_of_range', 'poster_at'],
  [{ start: '7', poster_at: '1.5' }, 'edit_out_of_range', 'poster_at'],
  [{ speed: '9' }, 'invalid_field', 'speed'],
  [{ start: '1', duration: '0.11' }, 'edit_out_of_range', 'duration'],
  [{ start: '1', duration: '0.11', speed: '0.25' }, 'edit_out_of_range', 'duration'],
])('%o is refused, and nothing stays', async (fields, code, param) => {
  const before = await accepting.traces()
  const { status, body } = await edited(await halves(), fields)
  expect([status, body.error.code, body.error.param]).toEqual([422, code, param])
  expect(await accepting.traces()).toEqual(before)
})

test('an odd crop has the same even size in its metadata and in every file', async () => {
  const answer = await edited(await halves(), { crop: '0,0,33,17', duration: '1' }, service)
  expect(answer.body.success.meta).toMatchObject({ width: '32', height: '16', frames: '10' })
  const { sizes } = await detailsOf(answer, service)
  for (const kind of ['gif', 'jpg', 'mp4', 'webm'])
    expect([kind, sizes[kind]]).toMatchObject([kind, { width: 32, height: 16 }])
})

test('imports and resumable uploads take the same fields', async () => {
  const file = await readFile(await halves())
  const farSide = await startFarSide([])
  farSide.answers({ 'https://halves.mp4': bytes(file) })
  const edit = { start: 2, duration: '0:01.5', mute: true, crop: '1:1' }
  const imported = await accepting.importFrom({ source: `${farSide.base}/halves.mp4`, ...edit })
  const described = { start: 2, duration: 1.5, crop: '8,0,48,48', mute: true }
  expect((await detailsOf(imported)).edit).toEqual(described)
  const refused = await accepting.importFrom({ source: `${farSide.base}/halves.mp4`, start: -1 })
  expect([refused.status, refused.body.error.code]).toEqual([422, 'invalid_field'])
  farSide.close()

  const { begin, send } = tusOf(accepting)
  const metadata = { start: '2', end: '3.5', mute: undefined, crop: '1:1' }
  const encoded = Object.entries(metadata).map(([name, value]) => (value ? `${name} ${btoa(value)}` : name))
  const path = await begin(file.length, { 'upload-metadata': encoded.join() })
  const id = (await send(path, 0, file)).headers.get('x-media-id')
  const { edit: ofPieces } = (await accepting.get(`/media/${id}`, { token: accepting.token })).body.success
  expect(ofPieces).toEqual(described)
  const bad = await accepting.call('POST', '/tus', {
    headers: {
      token: accepting.token,
      'tus-resumable': '1.0.0',
      'upload-length': '9',
      'upload-metadata': `speed ${btoa('99')}`,
    },
  })
  expect([bad.status, bad.body.error.code]).toEqual([422, 'invalid_field'])
})

test('an Idempotency-Key is for the edit, too', async () => {
  const path = await halves()
  const send = (fields: FormFields) => accepting.upload(path, fields, { 'idempotency-key': 'edit-1' })
  const first = await send([['start', '1']])
  const again = await send([['start', '1.000']])
  expect([idIn(again), again.headers.get('idempotency-replayed')]).toEqual([idIn(first), 'true'])
  expect((await send([['start', '2']])).body.error.code).toBe('idempotency_conflict')
})
