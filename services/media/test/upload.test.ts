import { getEventListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { describe, expect, vi } from 'vitest'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { scrambled } from './scrambled.ts'
import { formOf, idIn, startTestService, test } from './service.ts'

const URL_OF = { page: 'https://media.example/gif/', files: 'https://files.example/f/' }

/** A new clip each time: one picture, unique by its size. */
let sizes = 20
const newGif = () => gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }])

test('an upload answers 201 with exactly the members and types of the specification', async ({ service }) => {
  const answer = await service.upload(await clip('sound.mp4'), [['title', 'Hello']])
  expect(answer.status).toBe(201)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  const id = idIn(answer)
  expect(id).toMatch(/^[0-9A-Za-z]{8}$/)
  expect(answer.body).toEqual({
    success: {
      page: `${URL_OF.page}${id}`,
      files: Object.fromEntries(['gif', 'jpg', 'mp4', 'webm'].map((kind) => [kind, `${URL_OF.files}${id}.${kind}`])),
      oembed: `https://media.example/oembed/${id}`,
      embed: expect.stringMatching(
        new RegExp(
          `^<iframe src="https://media.example/embed/${id}" width="80" height="60" .*title="Hello"></iframe>$`,
        ),
      ),
      meta: { duration: '2s', frames: '50', height: '60', width: '80' },
    },
  })
  expect(answer.headers.get('location')).toBe(`https://media.example/media/${id}`)
  expect(answer.headers.get('x-media-state')).toBe('ready')
  expect(answer.headers.get('x-request-id')).toBeTruthy()
})

test.for([
  ['plain.gif', { width: '160', height: '120', duration: '1.5s', frames: '15' }],
  ['piped.webm', { width: '80', height: '60', frames: '50' }],
] as const)('%s gets its four files, each of its type', async ([name, meta], { service }) => {
  const { status, body } = await service.upload(await clip(name))
  expect(status).toBe(201)
  expect(body.success.meta).toMatchObject(meta)
  expect(body.success.meta.duration).toMatch(/^\d+(\.\d{1,3})?s$/)
  const begins = { gif: 'GIF8', jpg: '\xff\xd8', mp4: 'ftyp', webm: 'E\xdf\xa3' }
  for (const [kind, start] of Object.entries(begins)) {
    const file = await service.get(body.success.files[kind])
    expect([kind, file.status]).toEqual([kind, 200])
    expect(file.bytes.toString('latin1', 0, 12)).toContain(start)
  }
})

test('an upload leaves no abort listener behind', async ({ service }) => {
  const any = vi.spyOn(AbortSignal, 'any')
  const { forceStop } = service.deps
  const accepted = await service.upload(newGif(), [], { prefer: 'respond-async' })
  await service.upload(Buffer.from('no clip'))
  const made = any.mock.calls.map(([signals], call) => ({
    signals,
    signal: any.mock.results[call]?.value as AbortSignal,
  }))
  const ofUploads = made.filter(({ signals }) => [...signals].includes(forceStop))
  expect(ofUploads).toHaveLength(2)
  for (const { signal } of ofUploads) expect(getEventListeners(signal, 'abort')).toEqual([])
  any.mockRestore()
  const state = async () =>
    (await service.get(`/media/${idIn(accepted)}`, { token: service.token })).body.success?.state
  await expect.poll(state).toBe('ready')
})

describe('refused, with nothing left behind', () => {
  const whole = async () => readFile(await clip('plain.mp4'))

  test.for<[string, () => Promise<string | Uint8Array>, number, string, object?]>([
    [
      'a text file named .mp4',
      async () => Buffer.from('I am a video, honestly.\n'.repeat(300)),
      415,
      'unsupported_media_type',
    ],
    [
      'a playlist named .mp4',
      async () => Buffer.from('#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n'),
      415,
      'unsupported_media_type',
    ],
    ['zero bytes', async () => new Uint8Array(), 400, 'missing_file'],
    ['a Matroska file', () => clip('plain.mkv'), 415, 'unsupported_media_type'],
    ['sound alone', () => clip('audio-only.mp4'), 422, 'no_video_stream'],
    ['31 seconds', () => clip('long.mp4'), 422, 'duration_exceeded', { limit: 30, actual: 31, hint: 'start,duration' }],
    [
      '61 seconds',
      () => clip('minute.mp4'),
      422,
      'duration_exceeded',
      { limit: 30, actual: 61, hint: 'start,duration' },
    ],
    [
      '60 seconds that no header tells',
      () => clip('minute-piped.webm'),
      ...([422, 'duration_exceeded', { limit: 30, hint: 'start,duration' }] as const),
    ],
    ['a huge canvas', async () => gif(9000, 9000, [{ delay: 10, width: 1, height: 1 }]), 422, 'dimensions_exceeded'],
    [
      'a canvas of 16 million pixels for 298 frames of one',
      async () => gif(4095, 4095, Array(298).fill({ delay: 10, width: 1, height: 1 })),
      422,
      'too_many_frames',
      { limit: 59 },
    ],
    ...(
      [
        ['wide.mp4', 4098, 32],
        ['huge.mp4', 4100, 2200],
        ['huge.webm', 4100, 2200],
      ] as const
    ).map(([name, width, height]): [string, () => Promise<string>, number, string, object] => [
      `${name}, a picture over the limit`,
      () => clip(name),
      422,
      'dimensions_exceeded',
      { limit: { side: 4096 }, actual: { width, height } },
    ]),
    ['half an mp4', async () => (await whole()).subarray(0, 4000), 422, 'corrupt_media'],
    ['an mp4 whose pictures are noise', async () => scrambled(await whole()), 422, 'corrupt_media'],
  ])('%s', async ([, make, status, code, details], { service }) => {
    const before = await service.traces()
    const answer = await service.upload(await make())
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    if (details) expect(answer.body.error.details).toEqual(details)
    expect(answer.body).toMatchObject({
      message: answer.body.error.message,
      reference: `https://media.example/docs/errors#${code}`,
      error: { request_id: answer.headers.get('x-request-id') },
    })
    expect(await service.traces()).toEqual(before)
  })

  test.for<[string, () => FormData, number, string]>([
    ['no file', () => form(['title', 'x']), 400, 'missing_file'],
    ['a file sent as text', () => form(['file', 'x']), 400, 'missing_file'],
    ['two files', () => form(['file', new Blob(['a'])], ['file', new Blob(['b'])]), 400, 'invalid_request'],
    [
      'a thousand parts',
      () => form(...Array.from({ length: 1000 }, (_, n) => [`f${n}`, 'x'] as [string, string])),
      413,
      'body_too_large',
    ],
    ['a name that would pollute objects', () => form(['__proto__', 'x']), 400, 'malformed_multipart'],
  ])('a form with %s', async ([, make, status, code], { service }) => {
    const before = await service.traces()
    const answer = await service.call('POST', '/media/upload', { body: make(), headers: { token: service.token } })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    expect(await service.traces()).toEqual(before)
  })

  test.for<[string, string, string, number, string]>([
    ['JSON instead of a form', 'application/json', '{"file":"x"}', 415, 'unsupported_media_type'],
    ['no boundary', 'multipart/form-data', 'x', 400, 'malformed_multipart'],
    [
      'a boundary of 5,000 letters',
      `multipart/form-data; boundary=${'b'.repeat(5000)}`,
      'x',
      400,
      'malformed_multipart',
    ],
    [
      'a field of 30,000 lists in each other',
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="title"\r\nContent-Type: application/json\r\n\r\n${'['.repeat(30_000)}${']'.repeat(30_000)}\r\n--b--\r\n`,
      422,
      'invalid_field',
    ],
    ['an empty body', 'multipart/form-data; boundary=b', '', 400, 'missing_file'],
    [
      'a body that ends within the file',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nGIF89a',
      400,
      'malformed_multipart',
    ],
    [
      'a body that ends within the headers',
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Dispo',
      400,
      'malformed_multipart',
    ],
    ['a body without any boundary', 'multipart/form-data; boundary=b', 'hello', 400, 'malformed_multipart'],
  ])('%s', async ([, type, body, status, code], { service }) => {
    const before = await service.traces()
    const headers = { token: service.token, 'content-type': type }
    const answer = await service.call('POST', '/media/upload', { body, headers })
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    expect(await service.traces()).toEqual(before)
  })
})

test('50 frames in 50 millionths of a second are a tenth of a second', async ({ service }) => {
  const { status, body } = await service.upload(await clip('50-frames-in-50-us.mp4'))
  expect([status, body.success.meta]).toMatchObject([201, { duration: '0.1s', frames: '50' }])
})

test('30.04 seconds are still 30', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  expect((await service.upload(await clip('just-30.mp4'))).status).toBe(201)
  await service.close()
})

test('the operator limits the picture size, even for bytes that were accepted under another limit', async () => {
  const generous = await startTestService({ MEDIA_MAX_SIDE: '5000', MEDIA_WORKERS_ENABLED: 'false' })
  const later = { prefer: 'respond-async' }
  expect((await generous.upload(await clip('wide.mp4'), [], later)).status).toBe(201)
  const strict = await startTestService({
    MEDIA_MAX_SIDE: '70',
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_DATABASE_URL: generous.deps.config.database.url,
  })
  for (const name of ['wide.mp4', 'plain.mp4', 'plain.gif'] as const) {
    const { status, body } = await strict.upload(await clip(name), [], later)
    expect([status, body.error.code, body.error.details.limit]).toEqual([422, 'dimensions_exceeded', { side: 70 }])
  }
  expect(await strict.countRows()).toEqual({ clips: 1, sources: 1 })
  await strict.close()
  await generous.close()
})

test('a clip may not be longer than the operator says, even if its bytes were accepted under another limit', async () => {
  const generous = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const later = { prefer: 'respond-async' }
  expect((await generous.upload(await clip('plain.mp4'), [], later)).status).toBe(201)
  const strict = await startTestService({
    MEDIA_MAX_DURATION: '1s',
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_DATABASE_URL: generous.deps.config.database.url,
  })
  const { status, body } = await strict.upload(await clip('plain.mp4'), [], later)
  expect([status, body.error.code, body.error.details.limit]).toEqual([422, 'duration_exceeded', 1])
  expect(await strict.countRows()).toEqual({ clips: 1, sources: 1 })
  expect((await strict.get('/')).text).toContain('up to 1 second and 150 MB')
  expect((await generous.get('/')).text).toContain('up to 30 seconds and 150 MB')
  await strict.close()
  await generous.close()
})

test('uploads need a token, unless the operator allows them without one', async () => {
  const open = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional', MEDIA_RATE_LIMIT_ANONYMOUS: '1/1h' })
  const anonymous = () => formOfNewGif().then((body) => open.call('POST', '/media/upload', { body }))
  const formOfNewGif = async () => form(['file', new Blob([new Uint8Array(newGif())])])
  expect((await anonymous()).status).toBe(201)
  expect(await anonymous()).toMatchObject({ status: 429, body: { error: { code: 'rate_limited' } } })
  expect((await open.upload(newGif())).status).toBe(201)
  expect((await open.upload(newGif(), [], { token: 'mh_wrong' })).status).toBe(401)
  await open.close()
})

function form(...fields: [string, string | Blob][]): FormData {
  const data = new FormData()
  for (const [name, value] of fields) data.append(name, value)
  return data
}

test('an upload without a token counts for the address the nearest proxy wrote, whatever its port; IPv6 by network', async () => {
  const open = await startTestService({
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_RATE_LIMIT_ANONYMOUS: '1/1h',
    MEDIA_RATE_LIMIT_HEADER: 'X-Forwarded-For',
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_SYNC_WAIT: '0',
  })
  const statusFor = async (address: string) => {
    const body = await formOf(newGif())
    const headers = { 'x-forwarded-for': address, authorization: 'Basic cHJveHk6c2VjcmV0' }
    return (await open.call('POST', '/media/upload', { body, headers })).status
  }
  expect(await statusFor('10.0.0.1, 198.51.100.7')).toBe(201)
  expect(await statusFor('10.0.0.2, 198.51.100.7')).toBe(429)
  expect(await statusFor('198.51.100.7:40001')).toBe(429)
  expect(await statusFor('198.51.100.7, 198.51.100.8:40001')).toBe(201)
  expect(await statusFor('198.51.100.8:40002')).toBe(429)
  expect(await statusFor('2001:db8:1:2::1')).toBe(201)
  expect(await statusFor('[2001:db8:1:2:ffff::9]:40001')).toBe(429)
  expect(await statusFor('2001:db8:1:3::1')).toBe(201)
  expect(await statusFor('nonsense')).toBe(201)
  expect(await statusFor('198.51.100.9, other nonsense')).toBe(429)
  await open.close()
})

test('an oversized file beside the expected one is reported as too large', async () => {
  const service = await startTestService({ MEDIA_MAX_FILE_BYTES: '1000', MEDIA_WORKERS_ENABLED: 'false' })
  const body = form(['other', new Blob([new Uint8Array(5_000)])], ['file', new Blob([new Uint8Array(newGif())])])
  const answer = await service.call('POST', '/media/upload', { body, headers: { token: service.token } })
  expect([answer.status, answer.body.error.code]).toEqual([413, 'file_too_large'])
  await service.close()
})
