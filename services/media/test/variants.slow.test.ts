// Variants whose encoders have much to do, and all fixed sizes. The others: variants.test.ts.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { clipOf } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { inspect } from './inspect.ts'
import { type Answer, FILES_BASE_URL, idIn, startTestService, type TestService } from './service.ts'

const KEY = 'a-key-of-variants'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_VARIANT_KEY: KEY })
})
afterAll(() => service.close())

/** Moving noise, which no encoder compresses well. */
const noisyClip = () =>
  clipOf('variants-noise-2.mp4', [
    ...['-f', 'lavfi', '-i', 'nullsrc=s=480x360:r=16:d=2.2,geq=random(1)*255:128:128'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '10', '-pix_fmt', 'yuv420p'],
  ])

/** Wider than every variant of the fixed set, with sound. */
const wideClip = () =>
  clipOf('variants-1000x200.mp4', [
    ...['-f', 'lavfi', '-i', 'testsrc2=s=1000x200:r=10:d=1.4', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1.4'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '12', '-c:a', 'aac', '-ac', '1'],
  ])

/** The variant once it is made, as a client gets it that follows `Retry-After`. */
async function made(path: string): Promise<Answer> {
  await expect.poll(async () => (await service.get(path)).status).not.toBe(202)
  return service.get(path)
}

async function inspected({ bytes }: Answer, ending: string) {
  const path = join(service.blobsDir, `${crypto.randomUUID()}.${ending}`)
  await writeFile(path, bytes)
  return inspect(path)
}

test('animated variants and videos are made in the background, in their size, length and format', async () => {
  const id = idIn(await service.ready(await wideClip()))
  const first = await service.get(`/f/${id}/w240.gif`)
  expect([first.status, first.headers.get('retry-after')]).toEqual([202, '2'])
  for (const width of [240, 320]) {
    const answer = await made(`/f/${id}/w${width}.gif`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/gif'])
    const { streams, format } = await inspected(answer, 'gif')
    expect(streams[0]).toMatchObject({ codec_name: 'gif', width, height: width / 5 })
    expect(Number(format.duration)).toBeCloseTo(1.4, 1)
    const webp = await made(`/f/${id}/w${width}.anim.webp`)
    expect([webp.status, webp.headers.get('content-type')]).toEqual([200, 'image/webp'])
    const { pages, pageHeight, delay, loop } = await sharp(webp.bytes, { animated: true }).metadata()
    expect({ pages, pageHeight, loop }).toMatchObject({ pageHeight: width / 5, loop: 0 })
    expect(pages).toBeGreaterThan(10)
    expect(delay?.slice(0, -1).every((ms) => ms === 100)).toBe(true)
  }
  const mp4 = await made(`/f/${id}/w480.mp4`)
  expect([mp4.status, mp4.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  const { streams, format } = await inspected(mp4, 'mp4')
  expect(streams.map(({ codec_name }) => codec_name)).toEqual(['h264', 'aac'])
  expect(streams[0]).toMatchObject({ width: 480, height: 96, nb_read_frames: '14' })
  expect(Number(format.duration)).toBeCloseTo(1.4, 1)
  expect(mp4.bytes.length).toBeLessThan((await service.get(`/f/${id}.mp4`)).bytes.length)
  const { rows } = await service.deps.pool.query(
    'select name from variants join clips using (source_id) where id = $1',
    [id],
  )
  expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['w240.anim.webp', 'w240.gif', 'w480.mp4']))
})

test('every still of the fixed set is answered at once, in its size and format, with the headers of files', async () => {
  const id = idIn(await service.ready(await wideClip()))
  for (const width of [160, 320, 480, 640, 960]) {
    for (const [ending, format] of [
      ['jpg', 'jpeg'],
      ['webp', 'webp'],
    ] as const) {
      const path = `/f/${id}/w${width}.${ending}`
      const answer = await service.get(path)
      expect(answer.status).toBe(200)
      const { width: across, height, format: found } = await sharp(answer.bytes).metadata()
      expect({ across, height, found }).toEqual({
        across: width,
        height: width / 5,
        found: format,
      })
      expect(answer.headers.get('content-type')).toBe(`image/${format}`)
      const original = await service.get(`/f/${id}.jpg`)
      for (const name of [
        'cache-control',
        'content-security-policy',
        'last-modified',
        'cross-origin-resource-policy',
      ]) {
        expect(answer.headers.get(name)).toBe(original.headers.get(name))
      }
      expect(answer.headers.get('content-disposition')).toBe(`inline; filename="${id}-w${width}.${ending}"`)
      const again = await service.get(path, { 'if-none-match': answer.headers.get('etag') ?? '' })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
      const part = await service.get(path, { range: 'bytes=0-9' })
      expect([part.status, part.bytes]).toEqual([206, answer.bytes.subarray(0, 10)])
      const head = await service.call('HEAD', path)
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(answer.bytes.length)])
      expect((await service.get(`${path}?download=1`)).headers.get('content-disposition')).toMatch(/^attachment/)
    }
  }
})

test('max2m files are the best that fit into two million bytes, and an mp4 is the same when made again', async () => {
  const id = idIn(await service.upload(await noisyClip()))
  const { pool } = service.deps
  for (const ending of ['gif', 'mp4']) {
    const original = (await service.get(`/f/${id}.${ending}`)).bytes.length
    expect(original).toBeGreaterThan(2_000_000)
    const path = `/f/${id}/max2m.${ending}`
    const answer = await made(path)
    expect(answer.status).toBe(200)
    expect(answer.bytes.length).toBeLessThanOrEqual(2_000_000)
    expect(answer.bytes.length).toBeGreaterThan(1_000_000)
    const { streams, format } = await inspected(answer, ending)
    expect(Number(format.duration)).toBeCloseTo(2.2, 1)
    expect(Math.abs((streams[0]?.width ?? 0) / (streams[0]?.height ?? 1) - 4 / 3)).toBeLessThan(0.02)
    // That of a GIF would take ten seconds again, and holds by its writer (gif-writer.test.ts).
    if (ending === 'mp4') {
      await pool.query(`delete from variants where name = $1`, [`max2m.${ending}`])
      expect((await made(path)).headers.get('etag')).toBe(answer.headers.get('etag'))
    }
    const own = await service.get(`/f/${id}/max25m.${ending}`)
    expect([own.status, own.headers.get('location')]).toEqual([302, `${FILES_BASE_URL}/f/${id}.${ending}`])
  }
})

test('an animation is never larger than the mp4 that it is made of', async () => {
  const id = idIn(await service.upload(gif(1400, 1400, [{ delay: 50 }, { delay: 50, color: 1 }])))
  const { bytes } = await made(`/v/${signVariant(KEY, `/fmt:anim.webp/${id}.webp`)}/fmt:anim.webp/${id}.webp`)
  expect(await sharp(bytes, { animated: true }).metadata()).toMatchObject({ width: 1080, pageHeight: 1080 })
})
