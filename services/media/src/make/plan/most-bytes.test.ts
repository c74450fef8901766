import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { clipOf, unboxedTools } from '../../../test/clips.ts'
import { probe } from '../probe/probe.ts'
import { makeRenditions } from '../transcode/make-renditions.ts'
import { mostRenditionBytes } from './most-bytes.ts'

const noise = (size: string, seconds: number) => {
  const picture = `nullsrc=s=${size}:r=30:d=${seconds},geq=random(1)*255:random(2)*255:random(3)*255`
  return ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', `anoisesrc=d=${seconds}`]
}
const lossless = ['-c:v', 'libx264', '-preset', 'ultrafast', '-crf', '1', '-pix_fmt', 'yuv420p', '-c:a', 'aac']
const seeThroughNoise =
  'nullsrc=s=160x120:r=30:d=0.5,format=rgba,geq=random(1)*255:random(2)*255:random(3)*255:random(4)*255'
const hardlyLossy = ['-c:v', 'libvpx', '-pix_fmt', 'yuva420p', '-auto-alt-ref', '0', '-crf', '4', '-b:v', '50M']
const grain = ['-f', 'lavfi', '-i', 'color=gray:s=160x120:r=10:d=1,noise=alls=100:allf=t']

test.each([
  ['noise.mp4', [...noise('320x240', 0.5), ...lossless]],
  ['noise-16.mp4', [...noise('16x16', 1), ...lossless]],
  ['see-through-noise.webm', ['-f', 'lavfi', '-i', seeThroughNoise, ...hardlyLossy]],
  ['grain.gif', grain],
  ['one-frame-of-noise.gif', [...grain, '-frames:v', '1']],
])('the files of %s take no more than is reserved for them', async (name, recipe) => {
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
})
