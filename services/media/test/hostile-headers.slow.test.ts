import { hostileRequest, isWellAnswered, SMUGGLED } from '@services/common/testing/http/hostile-heads'
import { hostileRuns, sayHostile } from '@services/common/testing/http/hostile-run'
import { say } from '@services/common/testing/http/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

const REQUESTS = 10 * hostileRuns()

let service: TestService
let port: number
beforeAll(async () => {
  service = await startTestService(
    {
      MEDIA_RATE_LIMIT_READ: '1000000/1m',
      MEDIA_RATE_LIMIT_ANONYMOUS: '1000000/1h',
      MEDIA_RATE_LIMIT_PUBLIC: '1000000/1m',
      MEDIA_RATE_LIMIT_HEADER: 'X-Forwarded-For',
      MEDIA_UPLOAD_AUTH: 'optional',
      MEDIA_PARALLEL_PER_TOKEN: '100',
    },
    { timeLimits: { slowBodyMs: 1_000, unreadBodyMs: 1_000, uploadWindowMs: 1_000, uploadMs: 2_000 } },
  )
  port = Number(new URL(service.url).port)
})
afterAll(() => service.close())

test(
  'whatever stands in the head of a request, on the wire, the answer comes, is no failure and tells nothing of the inside',
  async () => {
    const picture = gif(24, 16, [{ delay: 10 }])
    const clip = idIn(await service.upload(picture))
    const form = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.gif"\r\n\r\n${picture.toString('latin1')}\r\n--b--\r\n`
    const target = {
      paths: [
        ...[
          '/media/upload',
          '/media/upload',
          '/media/upload',
          '/media/upload',
          '/media/import',
          '/tus',
          `/tus/${'a'.repeat(32)}`,
          `/media/${clip}`,
          '/media',
        ],
        ...[
          `/f/${clip}.gif`,
          `/f/${clip}.mp4`,
          `/gif/${clip}`,
          `/embed/${clip}`,
          `/oembed/${clip}`,
          `/media/${clip}/events`,
        ],
        ...['/tokens', '/webhooks', '/', '/health', '/x'],
      ],
      headers: {
        Token: [service.token, service.token, 'mh_garbage'],
        Authorization: [`Bearer ${service.token}`],
        'Content-Type': [...Array(5).fill('multipart/form-data; boundary=b'), 'application/json'],
        Range: ['bytes=0-9', 'bytes=0-0,5-6'],
        'If-Range': ['"x"'],
        'If-Match': ['*'],
        'If-None-Match': ['*', 'W/"x", "y"'],
        'If-Modified-Since': ['Thu, 01 Jan 1970 00:00:00 GMT'],
        Prefer: ['respond-async', 'wait=0'],
        'Idempotency-Key': ['a', 'b'],
        'Last-Event-ID': ['1'],
        Accept: ['application/problem+json', 'text/html'],
        'X-Forwarded-For': ['192.0.2.1, 10.0.0.1'],
        'X-Delete-Token': ['md_0'],
        'Tus-Resumable': ['1.0.0'],
        'Upload-Length': ['10', '0'],
        'Upload-Offset': ['0', '5'],
        'Upload-Metadata': ['title SGVsbG8='],
        'Upload-Defer-Length': ['1'],
      },
      body: form,
    }
    const { problems, statuses } = await sayHostile(
      { port, count: REQUESTS, requestOf: (seed) => hostileRequest(target, seed) },
      isWellAnswered,
    )
    expect(problems).toBe('')
    // Neither heads that are all refused by the parser nor ones that are all well would show anything.
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['200', '201', '400', '401', '404']))
  },
  120_000 + REQUESTS * 400,
)

test.for(SMUGGLED)('%s: the request is refused, and no second one is read out of it', async ([, bytes]) => {
  const start = `PATCH /media/00000000 HTTP/1.1\r\nHost: a\r\nToken: ${service.token}\r\nContent-Type: application/json`
  const { status, answers } = await say(port, bytes(start))
  expect([status, answers]).toEqual([400, 1])
})
