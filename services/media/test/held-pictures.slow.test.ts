// All parts of all recordings with a pause, of songs, and of files that name no length. The others:
// held-pictures.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clipOf } from './clips.ts'
import { expectPart, GREY, lumasOf, near, parts, pause, recordings, song, tone, vp8 } from './held-recordings.ts'
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

const edited = (path: string, fields: Record<string, string>, at = service, token = at.token) =>
  at.upload(path, Object.entries(fields) as FormFields, { token })

const detailsOf = async (answer: Answer, { get, token }: TestService = service) =>
  (await get(`/media/${idIn(answer)}`, { token })).body.success

describe.each(recordings)('a part of a recording with a pause, %s,', (...recording) => {
  test.each(parts)('shows what the source shows then (%o)', (...part) =>
    expectPart(service, recording as (typeof recordings)[number], part as (typeof parts)[number]),
  )
})

test('a part may come from any second of a long song, and says how long that is', async () => {
  const path = await song(100)
  for (const start of ['0', '20', '60', '90']) {
    const answer = await edited(path, { start, duration: '5' })
    expect([start, answer.body.success?.meta.duration]).toEqual([start, '5s'])
    const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
    expect(body.success.source).toMatchObject({ duration: 100 })
  }
  const { body: ofLonger } = await edited(await song(130), { start: '120', duration: '2' })
  expect([ofLonger.error.code, ofLonger.error.details.limit]).toEqual(['duration_exceeded', 120])
  const { body } = await edited(path, { start: '40', speed: '1.5' })
  expect([body.error.code, body.error.details.actual]).toEqual(['duration_exceeded', 40])
})

describe('a part of a picture with a song', () => {
  test('is the part, and the same bytes without an edit are the whole, also for another token', async () => {
    const path = await song(4)
    const parts = [
      [{ start: '2.5', duration: '1' }, '1s'],
      [{ start: '1', duration: '0.5' }, '0.5s'],
      [{ duration: '1.5' }, '1.5s'],
    ] as const
    for (const [fields, duration] of parts) {
      const answer = await edited(path, fields, accepting)
      expect([answer.status, answer.body.success?.meta.duration]).toEqual([201, duration])
      expect((await detailsOf(answer, accepting)).source).toMatchObject({ duration: 4 })
    }
    const whole = await edited(path, {}, accepting, (await accepting.newToken()).token)
    expect(whole.body.success.meta.duration).toBe('4s')
    const [[fields]] = parts
    expect((await detailsOf(await edited(path, fields))).state).toBe('ready')
  })
})

test('parts of different lengths are different clips, also of a file that names no length', async () => {
  const picture = ['-f', 'lavfi', '-i', 'color=blue:s=64x48:r=10:d=0.1']
  const live = await clipOf('song-live.webm', [...picture, ...tone(4), ...vp8, '-live', '1'])
  for (const duration of ['0.5', '1']) {
    expect((await edited(live, { start: '2.5', duration }, accepting)).body.success.meta.duration).toBe(`${duration}s`)
  }
  expect((await detailsOf(await edited(live, { start: '2.5', duration: '1' }))).state).toBe('ready')
  for (const duration of ['60', '70']) {
    const answer = await edited(live, { start: '2.5', duration }, accepting)
    expect((await detailsOf(answer, accepting)).edit).toEqual({ start: 2.5 })
  }
})

test('a pause may outlast the first 40 seconds of a file', async () => {
  const slow = ['-filter:v', "setpts='if(lt(N,11),N/10,50+(N-11)/10)/TB'", '-vsync', 'vfr', '-g', '100']
  const path = await clipOf('held-50.webm', [...pause, ...tone(52), ...slow, ...vp8])
  const answer = await edited(path, { start: '2.5', duration: '1' })
  expect((await detailsOf(answer)).source.duration).toBeCloseTo(52, 0)
  expect(await lumasOf(service, answer, [0, 0.5])).toEqual([near(GREY), near(GREY)])
})
