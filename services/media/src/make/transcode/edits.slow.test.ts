// Exact parts of real files, by the embedded ffmpeg of 2018 and the machine's own. Each frame of the sources has the
// brightness of its number, so that every frame of a result can be named.
import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { clipOf, embeddedTools, tools } from '../../../test/clips.ts'
import { brightness, inspect } from '../../../test/inspect.ts'
import { workDirectory } from '../../../test/rendition-tests.ts'
import { cleanEdit, type RawEdit } from '../../core/edits/edit.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { probe } from '../probe/probe.ts'
import { makeRenditions } from './make-renditions.ts'

const FRAMES = 200
const numbered = ['-f', 'lavfi', '-i', `nullsrc=s=96x64:r=25:d=8,geq=lum=16+N:cb=128:cr=128`]
const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:duration=8']
const x264 = ['-c:v', 'libx264', '-crf', '4', '-pix_fmt', 'yuv420p', '-c:a', 'aac']
const vp8 = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-crf', '4', '-b:v', '9M', '-g', '25']

/** Sources of 8 s, 25 frames a second. */
const sources = {
  'keyframes.mp4': [...numbered, ...tone, ...x264, '-g', '12'],
  'one-keyframe.mp4': [...numbered, ...tone, ...x264, '-g', '999'],
  'open-groups.mp4': [...numbered, ...tone, ...x264, '-g', '30', '-x264-params', 'open-gop=1'],
  // Joined in at a keyframe, the decoder gives gray frames.
  'complains.mp4': [
    ...[...numbered, ...tone, ...x264, '-g', '50', '-x264-params', 'open-gop=1:bframes=8:b-adapt=2'],
    ...['-pix_fmt', 'yuv444p'],
  ],
  'late.mp4': [...tone, '-itsoffset', '0.8', ...numbered, '-vsync', 'vfr', ...x264, '-g', '12'],
  'recording.webm': [...numbered, ...tone, ...vp8, '-c:a', 'libopus', '-live', '1'],
  'delays.gif': numbered,
} satisfies Record<string, string[]>

async function made(by: MediaTools, name: keyof typeof sources, raw: RawEdit) {
  const path = await clipOf(`numbered-${name}`, sources[name])
  const info = await probe(by, path, { edit: cleanEdit(raw) })
  const options = { workDirectory: await workDirectory(), threads: 2, gifEncoder: 'own', copy: 'auto' } as const
  return { ...(await makeRenditions(by, { path, info }, options)), info }
}

/** Number of the frame that has a brightness, which is 16 and its number in video levels. */
const numberOf = (luma: number) => (luma * 219) / 255

const numbersIn = async (path: string) => (await brightness(path)).map(numberOf)

describe.each([
  ['the embedded ffmpeg', embeddedTools],
  ['the ffmpeg of the machine', tools],
] as const)('by %s', (_, by) => {
  test.each(Object.keys(sources) as (keyof typeof sources)[])(
    'a part of %s has its frames and no others',
    async (name) => {
      for (const start of [1, 4.03]) {
        const { info, mp4, webm, gif } = await made(by, name, { start, duration: 1 })
        expect(info).toMatchObject({
          durationSeconds: 1,
          frames: 25,
          edited: { source: { width: 96, height: 64 } },
        })
        const first = Math.ceil((start - 0.02) * 25)
        // GIFs round colors.
        const tolerance = name === 'delays.gif' ? 4 : 1
        for (const path of [mp4.path, webm.path]) {
          const numbers = await numbersIn(path)
          expect(numbers).toHaveLength(25)
          for (const [at, number] of numbers.entries()) expect(Math.abs(number - first - at)).toBeLessThan(tolerance)
        }
        const ofGif = await numbersIn(gif.path)
        expect(Math.abs((ofGif[0] ?? 0) - first)).toBeLessThan(4)
        expect(Math.abs((ofGif.at(-1) ?? 0) - first - 24)).toBeLessThan(5)
      }
    },
  )

  test.each([
    [{ speed: 2 }, 4, FRAMES],
    [{ speed: 4 }, 2, 120],
    [{ speed: 0.25, duration: 1 }, 4, 50],
    [{ start: 4, end: 6, speed: 0.5 }, 4, 50],
  ] as const)(
    'at another speed (%o) the frames are spread over the new length, and so is the sound',
    async (edit, seconds, frames) => {
      const { mp4, webm, hasAudio } = await made(by, 'keyframes.mp4', edit)
      expect(hasAudio).toBe(true)
      const { streams, format } = await inspect(mp4.path)
      expect(streams[0]).toMatchObject({ nb_read_frames: String(frames) })
      expect(Number(streams[0]?.duration)).toBeCloseTo(seconds, 1)
      expect(Math.abs(Number(streams[1]?.duration) - seconds)).toBeLessThan(0.1)
      expect(Number(format.duration)).toBeCloseTo(seconds, 1)
      const numbers = await numbersIn(webm.path)
      const start = 'start' in edit ? 100 : 0
      expect(Math.abs((numbers[0] ?? 0) - start)).toBeLessThan(1.5)
      const middle = start + (frames === 50 ? (edit.speed === 0.5 ? 25 : 12.5) : 100)
      expect(Math.abs((numbers[Math.floor(numbers.length / 2)] ?? 0) - middle)).toBeLessThan(3)
    },
  )
})

test('the tone keeps its pitch at another speed', async () => {
  const { mp4 } = await made(embeddedTools, 'keyframes.mp4', { speed: 2 })
  const { execFileSync } = await import('node:child_process')
  const args = ['-v', 'error', '-i', mp4.path, '-ac', '1', '-ar', '8000', '-f', 's16le', '-']
  const samples = new Int16Array(execFileSync(embeddedTools.ffmpeg.path, args).buffer.slice(0, 8000 * 2 * 2))
  let crossings = 0
  for (let at = 1; at < samples.length; at++) if ((samples[at - 1] ?? 0) < 0 && (samples[at] ?? 0) >= 0) crossings++
  expect(Math.abs(crossings / 2 - 440)).toBeLessThan(15)
})

test('a crop has exactly its pixels', async () => {
  const quarters = [
    '-f',
    'lavfi',
    '-i',
    "nullsrc=s=96x64:r=5:d=1,geq=lum='if(lt(X,40),if(lt(Y,20),30,80),if(lt(Y,20),140,200))':cb=128:cr=128",
  ]
  const path = await clipOf('quarters.mp4', [...quarters, ...x264.slice(0, -2)])
  const cropped = async (crop: string) => {
    const info = await probe(embeddedTools, path, { edit: cleanEdit({ crop }) })
    const options = { workDirectory: await workDirectory(), threads: 1, gifEncoder: 'own', copy: 'auto' } as const
    return makeRenditions(embeddedTools, { path, info }, options)
  }
  const { jpg, mp4 } = await cropped('40,20,56,44')
  expect([jpg.width, jpg.height, mp4.width]).toEqual([56, 44, 56])
  const { channels } = await sharp(await readFile(jpg.path)).stats()
  expect((channels[0]?.max ?? 0) - (channels[0]?.min ?? 0)).toBeLessThan(8)
  const { channels: wide } = await sharp(await readFile((await cropped('36,20,56,44')).jpg.path)).stats()
  expect((wide[0]?.max ?? 0) - (wide[0]?.min ?? 0)).toBeGreaterThan(50)
})
