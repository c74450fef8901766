import { test } from 'vitest'
import { expectEnoughReserved, lossless, noise } from '../../../test/reserved-bytes.ts'

const seeThroughNoise =
  'nullsrc=s=160x120:r=30:d=0.5,format=rgba,geq=random(1)*255:random(2)*255:random(3)*255:random(4)*255'
const hardlyLossy = ['-c:v', 'libvpx', '-pix_fmt', 'yuva420p', '-auto-alt-ref', '0', '-crf', '4', '-b:v', '50M']

test.each([
  ['noise.mp4', [...noise('320x240', 0.5), ...lossless]],
  ['see-through-noise.webm', ['-f', 'lavfi', '-i', seeThroughNoise, ...hardlyLossy]],
])('the files of %s take no more than is reserved for them', expectEnoughReserved)
