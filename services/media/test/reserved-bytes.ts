import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { mostRenditionBytes } from '../src/make/plan/most-bytes.ts'
import { probe } from '../src/make/probe/probe.ts'
import { makeRenditions } from '../src/make/transcode/make-renditions.ts'
import { clipOf, unboxedTools } from './clips.ts'

/** ffmpeg's arguments for noise in picture and sound. */
export const noise = (size: string, seconds: number) => {
  const picture = `nullsrc=s=${size}:r=30:d=${seconds},geq=random(1)*255:random(2)*255:random(3)*255`
  return ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', `anoisesrc=d=${seconds}`]
}
export const lossless = ['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '1', '-pix_fmt', 'yuv420p', '-c:a', 'aac']

/** Makes all files of a clip, and expects that they take no more bytes than is reserved for them. */
export async function expectEnoughReserved(name: string, recipe: string[]): Promise<void> {
  const path = await clipOf(name, recipe)
  const info = await probe(unboxedTools, path)
  const workDirectory = await mkdtemp(join(tmpdir(), 'most-bytes-'))
  onTestFinished(() => rm(workDirectory, { recursive: true, force: true }))
  const { gif, jpg, mp4, webm } = await makeRenditions(
    unboxedTools,
    { path, info },
    { workDirectory, threads: 1, gifEncoder: 'own', copy: 'auto' },
  )
  const made = [gif, jpg, mp4, webm].reduce((sum, { bytes }) => sum + bytes, 0)
  const { size } = await stat(path)
  expect(made).toBeLessThanOrEqual(mostRenditionBytes(info, size))
}
