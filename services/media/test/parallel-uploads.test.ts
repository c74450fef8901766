import { expect, test } from 'vitest'
import { openUpload } from './clients/slow-upload.ts'
import { gif } from './gif-bytes.ts'
import { formOf, startTestService, type TestService } from './service.ts'

const SETTINGS = { MEDIA_PARALLEL_PER_TOKEN: '2', MEDIA_WORKERS_ENABLED: 'false' }
const later = { prefer: 'respond-async' }
let sizes = 20
const newGif = () => gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }])

/** Uploads under way that never end by themselves, once their files are being written. */
async function occupy(service: TestService, count: number, headers: Record<string, string>) {
  const uploads = Array.from({ length: count }, () => openUpload(service.url, headers))
  for (const upload of uploads) await upload.write(Buffer.alloc(1_000))
  const receiving = async () => (await service.listFiles()).filter((path) => path.startsWith('work/')).length
  await expect.poll(receiving).toBe(count)
  return uploads
}

test('a token has a limit of parallel uploads; one more is refused before its body is read, and costs nothing', async () => {
  const service = await startTestService({ ...SETTINGS, MEDIA_RATE_LIMIT_UPLOAD: '3/1h' })
  const { token } = service
  const [first, ...others] = await occupy(service, 2, { token })
  const unread = openUpload(service.url, { token })
  expect(await unread.answer).toMatchObject({ status: 429, body: { error: { code: 'queue_full' } } })
  for (let n = 0; n < 3; n++) {
    const refused = await service.upload(newGif(), [], later)
    expect([refused.status, refused.body.error.code]).toEqual([429, 'queue_full'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  const other = await service.newToken()
  expect((await service.upload(newGif(), [], { ...later, token: other.token })).status).toBe(201)
  first?.abort()
  // The third that counts of three in an hour.
  await expect.poll(async () => (await service.upload(newGif(), [], later)).status).toBe(201)
  for (const upload of [unread, ...others]) upload.abort()
  await service.close()
})

test('however an upload ends, its slot is free for the next one', async () => {
  const service = await startTestService({ ...SETTINGS, MEDIA_PARALLEL_PER_TOKEN: '1' })
  const { token, url } = service
  const isFree = () => expect.poll(async () => (await service.upload(newGif(), [], later)).status).toBe(201)

  expect((await service.upload(newGif(), [], later)).status).toBe(201)
  expect((await service.upload(Buffer.from('no clip'))).status).toBe(415)
  expect((await service.upload(new Uint8Array())).status).toBe(400)
  const broken = openUpload(url, { token }, '--b\r\nContent-Dispo')
  broken.end()
  expect((await broken.answer).status).toBe(400)
  await isFree()

  const [gone] = await occupy(service, 1, { token })
  gone?.abort()
  await isFree()

  const { clips } = await service.countRows()
  const impatient = new AbortController()
  const init = { method: 'POST', headers: { token }, body: await formOf(newGif()), signal: impatient.signal }
  const waiting = fetch(`${url}/media/upload`, init)
  await expect.poll(async () => (await service.countRows()).clips).toBe(clips + 1)
  expect((await service.upload(newGif(), [], later)).status).toBe(429)
  impatient.abort()
  await expect(waiting).rejects.toThrow()
  await isFree()
  await service.close()
})

test('callers without a token are distinguished by their address', async () => {
  const service = await startTestService({
    ...SETTINGS,
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_RATE_LIMIT_ANONYMOUS: '100/1h',
    MEDIA_RATE_LIMIT_HEADER: 'X-Forwarded-For',
  })
  const uploads = await occupy(service, 2, { 'x-forwarded-for': '198.51.100.7' })
  const statusFor = async (address: string) => {
    const headers = { ...later, 'x-forwarded-for': address }
    return (await service.call('POST', '/media/upload', { body: await formOf(newGif()), headers })).status
  }
  expect(await statusFor('198.51.100.7')).toBe(429)
  expect(await statusFor('198.51.100.8')).toBe(201)
  for (const upload of uploads) upload.abort()
  await service.close()
})
