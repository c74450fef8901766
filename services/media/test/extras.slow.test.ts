import sharp from 'sharp'
import { expect, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip, clipOf, tools, written } from './clips.ts'
import { inspect } from './inspect.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

const sizesOf = async (service: TestService, answer: Answer) =>
  (await service.get(`/media/${idIn(answer)}`, { token: service.token })).body.success.sizes
const kindsOf = async (service: TestService, answer: Answer) => Object.keys(await sizesOf(service, answer))

test('an AV1 copy and a WebP poster follow in the background, are offered first, and are deleted with the clip', async ({
  skip,
}) => {
  if (!tools.ffmpeg.av1Encoder) skip('this ffmpeg has no libsvtav1')
  const service = await startTestService({ MEDIA_EXTRAS: 'true' }, { tools })
  const film = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25:d=2']
  const sound = ['-i', await clip('sound.mp4'), '-map', '0:v', '-map', '1:a']
  const path = await clipOf('extras.mp4', [...film, ...sound, '-pix_fmt', 'yuv420p', '-metadata', 'title=Secret title'])
  const answer = await service.upload(path)
  expect(Object.keys(answer.body.success.files)).toEqual(['gif', 'jpg', 'mp4', 'webm'])
  const all = ['av1', 'gif', 'jpg', 'mp4', 'webm', 'webp']
  await expect.poll(() => kindsOf(service, answer), { interval: 100 }).toEqual(all)

  const id = idIn(answer)
  const [av1, webp] = [await service.get(`/f/${id}.av1.mp4`), await service.get(`/f/${id}.webp?download=1`)]
  const sizes = await sizesOf(service, answer)
  expect([av1.status, av1.headers.get('content-type'), av1.bytes.length]).toEqual([200, 'video/mp4', sizes.av1.bytes])
  expect(sizes.av1.bytes).toBeLessThan(Math.min(sizes.mp4.bytes, sizes.webm.bytes))
  const { streams, format } = await inspect(await written('extra.av1.mp4', av1.bytes))
  expect(streams).toMatchObject([
    { codec_name: 'av1', width: 160, height: 120, nb_read_frames: '50', pix_fmt: 'yuv420p' },
    { codec_name: 'aac' },
  ])
  expect(Number(format.duration)).toBeCloseTo(2, 1)
  expect(JSON.stringify(format)).not.toContain('Secret')
  expect(webp.headers.get('content-disposition')).toBe(`attachment; filename="${id}.webp"`)
  expect(await sharp(webp.bytes).metadata()).toMatchObject({ format: 'webp', width: 160, height: 120 })

  for (const path of [`/gif/${id}`, `/embed/${id}`]) {
    const { text } = await service.get(path)
    const offered = [...text.matchAll(/<source src="[^"]*\/f\/\w+\.([\w.]+)"/g)].map(([, ending]) => ending)
    expect(offered.slice(0, 3)).toEqual(['av1.mp4', 'webm', 'mp4'])
    expect(text).toContain(`poster="https://files.example/f/${id}.webp"`)
  }

  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  expect((await service.get(`/f/${id}.av1.mp4`)).status).toBe(410)
  for (let round = 0; round < 2; round++) {
    service.clock.advance({ seconds: 3_600 })
    await cleanUp(service.deps)
  }
  expect((await service.traces()).files).toEqual([])
  await service.close()
})
