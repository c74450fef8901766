import { readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { Upload, type UploadOptions } from 'tus-js-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { type Answer, startTestService, type TestService } from './service.ts'
import { arrived, codeOf, openPiece, PIECE, tusOf } from './tus.ts'

let sizes = 20
const newGif = () => gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }])
const noWorkers = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' }

/** Text in UTF-8 under names, as the protocol spells it. */
const metadata = (fields: Record<string, string>) =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join()

const resultOf = ({ headers }: Answer) => JSON.parse(headers.get('x-media') ?? 'null')

const partialFiles = async (service: TestService) =>
  (await service.listFiles()).filter((path) => path.startsWith('work/resumable/'))

describe('with the client of the protocol', () => {
  let service: TestService

  beforeAll(async () => {
    const port = await findFreePort()
    service = await startTestService({ MEDIA_PORT: String(port), MEDIA_BASE_URL: `http://127.0.0.1:${port}` })
  })
  afterAll(() => service.close())

  const upload = (bytes: Uint8Array, options: UploadOptions) =>
    new Promise<{ client: Upload; result: string | undefined }>((resolve, reject) => {
      let result: string | undefined
      const client = new Upload(Buffer.from(bytes), {
        endpoint: `${service.url}/tus`,
        headers: { Token: service.token },
        onAfterResponse: (_request, response) => {
          result = response.getHeader('X-Media') ?? result
        },
        onSuccess: () => resolve({ client, result }),
        onError: reject,
        ...options,
      })
      client.start()
    })

  test('a file sent in pieces becomes the same clip as by a form, with its title, tags and attribution', async () => {
    const fields = {
      title: 'Grüße 🎈',
      tags: 'eins, zwei',
      nsfw: 'on',
      attribution_site: 'reddit',
      attribution_user: 'u/ada',
      filename: 'clip.mp4',
    }
    const bytes = await readFile(await clip('plain.mp4'))
    const before = await service.traces()
    const { result = '' } = await upload(bytes, { metadata: fields, chunkSize: 3_000 })
    const { page, files, meta } = JSON.parse(result)
    expect(meta).toEqual({ duration: '2s', frames: '50', height: '60', width: '80' })
    expect((await service.get(files.webm)).status).toBe(200)
    const details = await service.get(page.replace('/gif/', '/media/'), { token: service.token })
    expect(details.body.success).toMatchObject({
      state: 'ready',
      title: 'Grüße 🎈',
      tags: ['eins', 'zwei'],
      nsfw: true,
      attribution: { site: 'reddit', user: 'ada' },
      source: { kind: 'upload', bytes: bytes.length },
    })
    expect(await service.traces()).toMatchObject({ clips: before.clips + 1 })
  })

  test.each([
    ['with the first request', { uploadDataDuringCreation: true }],
    ['without saying how long it is', { uploadLengthDeferred: true, chunkSize: 200 }],
  ])('a file that is sent %s', async (_name, options) => {
    const { result = '' } = await upload(newGif(), options)
    expect(JSON.parse(result).meta).toMatchObject({ frames: '2' })
  })

  test('a file that is no clip is refused as such, and leaves nothing', async () => {
    const before = await service.traces()
    const refused = await upload(Buffer.from('I am a video, honestly'), { retryDelays: [0] }).catch((error) => error)
    expect(refused.originalResponse.getStatus()).toBe(415)
    expect(JSON.parse(refused.originalResponse.getBody()).error.code).toBe('unsupported_media_type')
    expect(await service.traces()).toEqual(before)
  })

  test('a client that gets 503 at the last byte retries by itself, and sends that byte again', async () => {
    const { worker } = service.deps.config
    const { queueLimit } = worker
    const pieces: [status: number, result: string][] = []
    await upload(newGif(), {
      chunkSize: 100,
      retryDelays: [0, 0],
      onBeforeRequest: (request) => {
        if (request.getMethod() !== 'PATCH') return
        worker.queueLimit = pieces.some(([status]) => status === 503) ? queueLimit : 0
      },
      onAfterResponse: (request, response) => {
        if (request.getMethod() === 'PATCH') {
          pieces.push([response.getStatus(), response.getHeader('X-Media') ?? ''])
        }
      },
    }).finally(() => {
      worker.queueLimit = queueLimit
    })
    expect(pieces.map(([status]) => status)).toEqual([...pieces.slice(2).map(() => 204), 503, 204])
    expect(JSON.parse(pieces.at(-1)?.[1] ?? '').meta.frames).toBe('2')
  })
})

describe('on the wire', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ ...noWorkers, MEDIA_MAX_FILE_BYTES: '100000' })
  })
  afterAll(() => service.close())

  test('OPTIONS lists the version and extensions, to browsers of other sites too', async () => {
    for (const path of ['/tus', '/tus/x']) {
      const { status, headers } = await service.call('OPTIONS', path, {
        headers: {
          origin: 'https://other.example',
          'access-control-request-method': 'PATCH',
          'access-control-request-headers': 'upload-offset',
        },
      })
      expect([status, headers.get('tus-version'), headers.get('tus-max-size')]).toEqual([204, '1.0.0', '100000'])
      expect(headers.get('tus-extension')).toBe(
        'creation,creation-with-upload,creation-defer-length,termination,expiration',
      )
      expect(headers.get('access-control-allow-headers')).toMatch(/Tus-Resumable, .*Upload-Offset/)
      expect(headers.get('access-control-allow-methods')).toContain('PATCH')
    }
  })

  test.for<[string, string, Record<string, string>, number, string]>([
    ['no version', 'POST', { 'tus-resumable': '', 'upload-length': '10' }, 412, 'tus_version_unsupported'],
    ['another version', 'POST', { 'tus-resumable': '0.2.2', 'upload-length': '10' }, 412, 'tus_version_unsupported'],
    ['no token', 'POST', { token: 'mh_no', 'upload-length': '10' }, 401, 'token_missing_or_invalid'],
    ['no length', 'POST', {}, 400, 'invalid_request'],
    ['two lengths', 'POST', { 'upload-length': '10', 'upload-defer-length': '1' }, 400, 'invalid_request'],
    ['a length that is none', 'POST', { 'upload-length': '1e3' }, 400, 'invalid_request'],
    ['no bytes', 'POST', { 'upload-length': '0' }, 400, 'missing_file'],
    ['one byte over the limit', 'POST', { 'upload-length': '100001' }, 413, 'file_too_large'],
    ['pieces side by side', 'POST', { 'upload-length': '10', 'upload-concat': 'partial' }, 400, 'invalid_request'],
    ['broken metadata', 'POST', { 'upload-length': '10', 'upload-metadata': 'title ***' }, 400, 'invalid_request'],
    [
      'a field that a form could not have',
      'POST',
      { 'upload-length': '10', 'upload-metadata': metadata({ nsfw: 'maybe' }) },
      422,
      'invalid_field',
    ],
    ['a guessed address', 'HEAD', {}, 404, ''],
  ])('refused before a byte is sent: %s', async ([, method, headers, status, code]) => {
    const path = method === 'POST' ? '/tus' : `/tus/${'a'.repeat(32)}`
    const answer = await tusOf(service).call(method, path, headers)
    expect([answer.status, answer.body?.error.code ?? '']).toEqual([status, code])
    expect(answer.headers.get('tus-resumable')).toBe('1.0.0')
    expect(await partialFiles(service)).toEqual([])
  })

  test.for(['/tus/..%2f..%2fpasswd', '/tus/%00', `/tus/${'a'.repeat(31)}.`])('%s is nowhere', async (path) => {
    expect(codeOf(await tusOf(service).call('DELETE', path))).toEqual([404, 'not_found'])
  })

  test('the last piece brings the result: in headers, in a body on request, and again on a retry', async () => {
    const tus = tusOf(service)
    const bytes = newGif()
    const path = await tus.begin(bytes.length, { 'upload-metadata': metadata({ title: 'Grüße' }) })
    expect(path).toMatch(/^\/tus\/[0-9A-Za-z]{32}$/)
    const first = await tus.send(path, 0, bytes.subarray(0, 10))
    expect([first.status, first.headers.get('upload-offset')]).toEqual([204, '10'])
    const expires = Date.parse(first.headers.get('upload-expires') ?? '')
    expect(expires - service.clock.now().getTime()).toBeGreaterThan(86_390_000)
    expect(codeOf(await tus.send(path, 9, bytes.subarray(9)))).toEqual([409, 'offset_conflict'])
    expect(codeOf(await tus.send(path, 10, Buffer.alloc(bytes.length)))).toEqual([413, 'file_too_large'])
    expect(codeOf(await tus.send(path, 10, bytes.subarray(10), { 'content-type': 'image/gif' }))).toEqual([
      415,
      'unsupported_media_type',
    ])
    const last = await tus.send(path, 10, bytes.subarray(10))
    expect([last.status, last.text, last.headers.get('location')]).toEqual([204, '', null])
    expect(last.headers.get('x-media')).toMatch(/^[\x20-\x7e]+$/)
    expect(resultOf(last).embed).toContain('title="Grüße"')
    expect([last.headers.get('upload-offset'), last.headers.get('x-media-state')]).toEqual([
      String(bytes.length),
      'processing',
    ])
    expect(await partialFiles(service)).toEqual([])

    const again = await tus.send(path, bytes.length, Buffer.alloc(0), { accept: 'application/json' })
    expect([again.status, again.body.success]).toEqual([200, resultOf(last)])
    expect(codeOf(await tus.send(path, bytes.length, bytes))).toEqual([413, 'file_too_large'])
    const { headers } = await tus.call('HEAD', path)
    expect([headers.get('upload-offset'), headers.get('x-media-id')]).toEqual([
      String(bytes.length),
      last.headers.get('x-media-id'),
    ])
    expect((await tus.call('DELETE', path)).status).toBe(204)
    expect((await tus.call('HEAD', path)).status).toBe(404)
    expect((await service.get(`/media/${last.headers.get('x-media-id')}`, { token: service.token })).status).toBe(200)
  })

  test('a whole file with the first request is answered with the result at once', async () => {
    const bytes = newGif()
    const answer = await tusOf(service).call(
      'POST',
      '/tus',
      { 'upload-length': bytes.length, 'content-type': PIECE },
      bytes,
    )
    expect([answer.status, answer.body.success.meta.frames]).toEqual([201, '2'])
    expect(answer.headers.get('location')).toContain('/tus/')
  })

  test("an upload is its token's alone", async () => {
    const { token } = await service.newToken()
    const other = tusOf(service, token)
    const path = await tusOf(service).begin(100, { 'upload-metadata': '' })
    expect((await other.call('HEAD', path)).status).toBe(404)
    expect(codeOf(await other.send(path, 0, Buffer.alloc(10)))).toEqual([404, 'not_found'])
    expect(codeOf(await other.call('DELETE', path))).toEqual([404, 'not_found'])
    const { token: reader } = await service.newToken({ scopes: ['read'] })
    expect(codeOf(await tusOf(service, reader).call('DELETE', path))).toEqual([403, 'insufficient_scope'])
    expect((await tusOf(service).call('DELETE', path)).status).toBe(204)
    expect(await partialFiles(service)).toEqual([])
  })

  test('a file over the quota is refused before it is received; one that no longer fits waits for space', async () => {
    const bytes = newGif()
    const { token, id } = await service.newToken({ limits: { quota_bytes: bytes.length } })
    const tus = tusOf(service, token)
    const long = { 'upload-length': bytes.length + 1 }
    expect(codeOf(await tus.call('POST', '/tus', long))).toEqual([507, 'quota_exceeded'])
    const path = await tus.begin(bytes.length)
    const setQuota = (quota: number) =>
      service.deps.pool.query('update api_tokens set limits = $2 where id = $1', [id, { quota_bytes: quota }])
    await setQuota(1)
    expect(codeOf(await tus.send(path, 0, bytes))).toEqual([507, 'quota_exceeded'])
    await setQuota(bytes.length)
    expect((await tus.send(path, bytes.length - 1, Buffer.alloc(0))).status).toBe(204)
  })

  test('a deferred length is still bounded, and may turn out to be zero', async () => {
    const tus = tusOf(service)
    const begin = async () => {
      const { headers } = await tus.call('POST', '/tus', { 'upload-defer-length': '1' })
      return new URL(headers.get('location') as string).pathname
    }
    const path = await begin()
    expect((await tus.send(path, 0, Buffer.alloc(60_000))).status).toBe(204)
    expect((await tus.call('HEAD', path)).headers.get('upload-defer-length')).toBe('1')
    expect(codeOf(await tus.send(path, 60_000, Buffer.alloc(60_000)))).toEqual([413, 'file_too_large'])
    expect(codeOf(await tus.send(path, 60_000, Buffer.alloc(0), { 'upload-length': '200000' }))).toEqual([
      413,
      'file_too_large',
    ])
    await tus.call('DELETE', path)
    expect(codeOf(await tus.send(await begin(), 0, Buffer.alloc(0), { 'upload-length': '0' }))).toEqual([
      400,
      'missing_file',
    ])
    expect(await partialFiles(service)).toEqual([])
  })

  test('while the service is busy a complete file stays, and is accepted later without sending it again', async () => {
    const tus = tusOf(service)
    const { worker } = service.deps.config
    const { queueLimit } = worker
    const bytes = newGif()
    const path = await tus.begin(bytes.length)
    worker.queueLimit = 0
    const refused = await tus.send(path, 0, bytes)
    worker.queueLimit = queueLimit
    expect(codeOf(refused)).toEqual([503, 'busy'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    // Clients take an upload at its full length for done.
    expect(await tus.offset(path)).toBe(bytes.length - 1)
    const { clips } = await service.countRows()
    const answers = await Promise.all([1, 2, 3].map(() => tus.send(path, bytes.length - 1, Buffer.alloc(0))))
    const finished = answers.filter(({ status }) => status === 204)
    expect(finished.length).toBeGreaterThan(0)
    expect(new Set(finished.map(({ headers }) => headers.get('x-media-id'))).size).toBe(1)
    expect((await service.countRows()).clips).toBe(clips + 1)
  })

  test('of two concurrent writers the later one wins, and the file has the bytes that were sent', async () => {
    const tus = tusOf(service)
    const bytes = newGif()
    const path = await tus.begin(bytes.length)
    const stalled = openPiece(service, path, { 'content-length': bytes.length })
    stalled.write(bytes.subarray(0, 50))
    await arrived(service, path, 50)
    const answer = await tus.send(path, 50, bytes.subarray(50), { accept: 'application/json' })
    expect([answer.status, answer.body.success?.meta.frames]).toEqual([200, '2'])
    stalled.abort()
  })

  test('a broken connection keeps the bytes that arrived, until the upload expires', async () => {
    const tus = tusOf(service)
    const path = await tus.begin(50_000)
    const broken = openPiece(service, path, { 'transfer-encoding': 'chunked' })
    broken.write(Buffer.alloc(20_000))
    await arrived(service, path, 20_000)
    broken.abort()
    await expect.poll(() => tus.offset(path)).toBe(20_000)
    service.clock.advance({ seconds: 86_401 })
    expect((await tus.call('HEAD', path)).status).toBe(410)
    expect(codeOf(await tus.send(path, 20_000, Buffer.alloc(10)))).toEqual([410, 'gone'])
    const stray = join(service.blobsDir, 'work/resumable', 'b'.repeat(32))
    await writeFile(stray, 'x')
    await utimes(stray, 0, 0)
    await cleanUp(service.deps)
    expect(await partialFiles(service)).toEqual([])
    expect((await tus.call('HEAD', path)).status).toBe(404)
  })
})

test('headers of an answer fit where proxies keep them, whatever the title', async () => {
  const service = await startTestService({ ...noWorkers, MEDIA_SYNC_WAIT: '0' })
  const tus = tusOf(service)
  const bytes = newGif()
  for (const title of ['😀'.repeat(100), '"'.repeat(200), 'ü'.repeat(200)]) {
    const path = await tus.begin(bytes.length, { 'upload-metadata': metadata({ title }) })
    const { status, headers } = await tus.send(path, 0, bytes)
    expect(status).toBe(204)
    const text = [...headers].map(([name, value]) => `${name}: ${value}`).join('\r\n')
    expect(text.length).toBeLessThan(4_000)
    expect(resultOf({ headers } as Answer).files.mp4).toContain(headers.get('x-media-id'))
  }
  await service.close()
})
