// Recordings whose pictures last unequally, their parts, and the grey that a part shows.
import sharp from 'sharp'
import { expect } from 'vitest'
import { clipOf } from './clips.ts'
import { type Answer, type FormFields, idIn, type TestService } from './service.ts'

export const tone = (seconds: number) => ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`]
export const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a', 'aac']

/** One picture and a tone, as of music. */
export const song = (seconds: number) =>
  clipOf(`song-${seconds}.mp4`, [...['-f', 'lavfi', '-i', 'color=blue:s=64x48:r=10:d=0.1'], ...tone(seconds), ...x264])

/** 12 s at 10 fps: dark for a second, grey and still until 10 s, then bright. */
export const pause = [
  ...['-f', 'lavfi', '-i', "nullsrc=s=64x48:r=10:d=3.1,geq=lum='if(lt(N,10),30,if(lt(N,11),120,220))':cb=128:cr=128"],
]
const times = ['-filter:v', "setpts='if(lt(N,11),N/10,10+(N-11)/10)/TB'", '-vsync', 'vfr', '-g', '100']
export const vp8 = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-c:a', 'libopus']

export const recording = () => clipOf('held-recording.mp4', [...pause, ...times, ...x264])

/** The same as other programs write it: only some files say how long a picture stays, or how long they are. */
export const recordings = [
  ['an mp4', recording],
  [
    'an mp4 with frames out of order, and sound',
    () =>
      clipOf('held-b.mp4', [...pause, ...tone(12), ...times, '-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-c:a', 'aac']),
  ],
  ['a webm', () => clipOf('held.webm', [...pause, ...times, ...vp8])],
  ['a webm with sound', () => clipOf('held-sound.webm', [...pause, ...tone(12), ...times, ...vp8])],
  ['a webm of a browser', () => clipOf('held-live.webm', [...pause, ...tone(12), ...times, ...vp8, '-live', '1'])],
] as const

export const [DARK, GREY, BRIGHT] = [30, 120, 220].map((luma) => Math.round(((luma - 16) * 255) / 219)) as [
  number,
  number,
  number,
]

export async function lumaOf(bytes: Uint8Array): Promise<number> {
  return (await sharp(bytes).stats()).channels[0]?.mean ?? -99
}

/** Grey of the pictures at some seconds. */
export async function lumasOf(service: TestService, answer: Answer, times: number[]): Promise<number[]> {
  const lumas: number[] = []
  for (const time of times) {
    const still = `/f/${idIn(answer)}/t${time}.jpg`
    await expect.poll(async () => (await service.get(still)).status).toBe(200)
    lumas.push(await lumaOf((await service.get(still)).bytes))
  }
  return lumas
}

export const near = (luma: number) => expect.toSatisfy((found: number) => Math.abs(found - luma) < 12)

/** Parts of any of them, with their length and the pictures at some seconds. */
export const parts = [
  // The picture of the pause, from there.
  [
    { start: '5', duration: '1' },
    '1s',
    [
      [0, GREY],
      [0.5, GREY],
    ],
  ],
  [
    { start: '8', duration: '3' },
    '3s',
    [
      [0, GREY],
      [1.5, GREY],
      [2.5, BRIGHT],
    ],
  ],
  // Before it, and up to it.
  [{ start: '0.6', duration: '0.4' }, '0.4s', [[0, DARK]]],
  [
    { start: '0.5', duration: '1.5' },
    '1.5s',
    [
      [0, DARK],
      [1, GREY],
    ],
  ],
  [{ start: '10.5', duration: '1' }, '1s', [[0, BRIGHT]]],
  [
    { start: '8', duration: '4', speed: '2' },
    '2s',
    [
      [0, GREY],
      [0.5, GREY],
      [1.5, BRIGHT],
    ],
  ],
] as const

/** Uploads the recording with the edit, and expects that the clip shows what the source shows then. */
export async function expectPart(
  service: TestService,
  [, path]: (typeof recordings)[number],
  [fields, duration, pictures]: (typeof parts)[number],
): Promise<void> {
  const answer = await service.upload(await path(), Object.entries(fields) as FormFields)
  expect([answer.status, answer.body.success?.meta.duration]).toEqual([201, duration])
  const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  expect(body.success.edit).toMatchObject({ start: Number(fields.start) })
  const times = pictures.map(([time]) => time)
  expect(await lumasOf(service, answer, times)).toEqual(pictures.map(([, luma]) => near(luma)))
}
