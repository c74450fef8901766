import { test } from 'vitest'
import { expectEnoughReserved, lossless, noise } from '../../../test/reserved-bytes.ts'

const grain = ['-f', 'lavfi', '-i', 'color=gray:s=160x120:r=10:d=1,noise=alls=100:allf=t']

test.each([
  ['noise-16.mp4', [...noise('16x16', 1), ...lossless]],
  ['grain.gif', grain],
  ['one-frame-of-noise.gif', [...grain, '-frames:v', '1']],
])('the files of %s take no more than is reserved for them', expectEnoughReserved)
