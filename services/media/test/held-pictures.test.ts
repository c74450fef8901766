// Edits of sources whose pictures last unequally: screen recordings, slide shows, one moment. More:
// held-pictures.slow.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clipOf } from './clips.ts'
import { gif } from './gif-bytes.ts'
import {
  BRIGHT,
  DARK,
  GREY,
  lumaOf,
  lumasOf,
  near,
  pause,
  recording,
  song,
  tone,
  vp8,
  x264,
} from './held-recordings.ts'
import { type Answer, type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
/** Accepts and never makes: the probe decides enough. */
let accepting: TestService
beforeAll(async () => {
  const settings = { MEDIA_MAX_SOURCE_DURATION: '2m' }
  service = await startTestService(settings)
  accepting = await startTestService({ ...settings, MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => Promise.all([service.close(), accepting.close()]))

const edited = (file: string | Uint8Array, fields: Record<string, string>, at = service, token = at.token) =>
  at.upload(file, Object.entries(fields) as FormFields, { token })

const detailsOf = async (answer: Answer, { get, token }: TestService = service) =>
  (await get(`/media/${idIn(answer)}`, { token })).body.success

/** Pictures that fill the GIF: white is 0. */
const [WHITE, BLACK] = [0, 1].map((color) => ({ width: 40, height: 30, color: color as 0 | 1 }))

test('a part of a gif begins within a picture and ends within one', async () => {
  const frames = [
    { delay: 50, ...WHITE },
    { delay: 300, ...BLACK },
    { delay: 100, ...WHITE },
  ]
  const answer = await edited(gif(40, 30, frames), { start: '1', duration: '3' })
  expect(answer.body.success.meta.duration).toBe('3s')
  expect((await detailsOf(answer)).edit).toEqual({ start: 1, duration: 3 })
  expect(await lumasOf(service, answer, [0, 2, 2.5])).toEqual([near(0), near(0), near(255)])
})

test('a part of slides of equal length begins within one', async () => {
  const slides = await clipOf('slides.mp4', [
    ...['-f', 'lavfi', '-i', "nullsrc=s=64x48:r=1/5:d=15,geq=lum='30+N*90':cb=128:cr=128", ...x264],
  ])
  const answer = await edited(slides, { start: '3', duration: '4' })
  expect(await lumasOf(service, answer, [0, 1.5, 2.5])).toEqual([near(DARK), near(DARK), near(GREY)])
})

test('a moving picture ends a part, however long the sound goes on', async () => {
  const path = await clipOf('long-sound.webm', [...pause, ...tone(8), ...vp8])
  const answer = await edited(path, { start: '1', duration: '30' })
  expect(answer.body.success.meta.duration).toBe('2.1s')
  expect((await edited(path, { start: '5', duration: '2' })).body.error.code).toBe('edit_out_of_range')
})

describe('the chosen poster', () => {
  test.each([
    [{ poster_at: '5' }, GREY],
    [{ poster_at: '11.99' }, BRIGHT],
    [{ duration: '6', poster_at: '4' }, GREY],
    [{ speed: '2', poster_at: '4.9' }, GREY],
  ])('is the picture that is shown then (%o)', async (fields, luma) => {
    const answer = await edited(await recording(), fields)
    expect(answer.status).toBe(201)
    expect(await lumaOf((await service.get(`/f/${idIn(answer)}.jpg`)).bytes)).toEqual(near(luma))
  })

  test('may be held to the end of a gif, and of a song', async () => {
    const frames = [
      { delay: 50, ...WHITE },
      { delay: 150, ...BLACK },
    ]
    const posterOf = async (answer: Answer) => lumaOf((await service.get(`/f/${idIn(answer)}.jpg`)).bytes)
    expect(await posterOf(await edited(gif(40, 30, frames), { poster_at: '1.9' }))).toEqual(near(0))
    expect(await posterOf(await edited(gif(40, 30, frames), { poster_at: '0.4' }))).toEqual(near(255))
    // Blue has no red.
    expect(await posterOf(await edited(await song(4), { poster_at: '3.9' }))).toEqual(near(0))
  })
})

test('a clip of a moment can be edited as a longer one can, but has no parts', async () => {
  const moment = await clipOf('moment.mp4', [
    ...['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=30:d=0.0666', ...x264, '-frames:v', '2'],
  ])
  const harmless: Record<string, string>[] = [
    { mute: 'true' },
    { crop: '1:1' },
    { speed: '0.5' },
    { poster_at: '0' },
    { start: '0' },
  ]
  for (const fields of harmless) expect([fields, (await edited(moment, fields)).status]).toEqual([fields, 201])
  const quick = (await edited(moment, { speed: '4' })).body.error
  expect([quick.code, quick.param]).toEqual(['edit_out_of_range', 'speed'])
  const { body } = await edited(moment, { start: '0.03' })
  expect([body.error.code, body.error.details]).toEqual(['edit_out_of_range', { least: 0.1 }])
})

test('a part of a gif counts its whole length, as any source', async () => {
  const frames = Array.from({ length: 60 }, (_, at) => ({ delay: 300, color: (at % 2) as 0 | 1 }))
  const { status, body } = await edited(gif(20, 20, frames), { start: '10', duration: '5' })
  expect([status, body.error.code, body.error.details]).toEqual([422, 'duration_exceeded', { limit: 120, actual: 180 }])
})

test.each([
  [{ start: '0' }, 61],
  [{ speed: '1.5' }, 40.667],
  [{ start: '10', duration: '40' }, 40],
  [{ start: '1', speed: '0.5' }, 120],
])('a refusal for its length says the length that the result would have (%o)', async (fields, actual) => {
  const minute = await clipOf('held-minute.mp4', ['-f', 'lavfi', '-i', 'color=s=64x48:r=5:d=61', ...x264])
  const { body } = await edited(minute, fields as Record<string, string>)
  expect([body.error.code, body.error.details]).toEqual([
    'duration_exceeded',
    { limit: 30, actual, hint: 'start,duration' },
  ])
})
