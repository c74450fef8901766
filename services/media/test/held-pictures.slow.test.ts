// All parts of all recordings with a pause, and parts of long songs. The others: held-pictures.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectPart, parts, recordings, song } from './held-recordings.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_MAX_SOURCE_DURATION: '2m' })
})
afterAll(() => service.close())

const edited = (path: string, fields: Record<string, string>) =>
  service.upload(path, Object.entries(fields) as FormFields)

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
