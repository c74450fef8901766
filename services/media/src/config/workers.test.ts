import { expect, test } from 'vitest'
import { slotsOfProcess } from './workers.ts'

const GIB = 1024 ** 3

test.each([
  [1, 2, 16, 4096, 2],
  [1, 8, 16, 4096, 8],
  [2, 8, 16, 4096, 4],
  // Memory for three clips: two, and the slot for other tokens.
  [1, 8, 4, 4096, 2],
  [2, 8, 4, 4096, 1],
  [1, 8, 2.5, 4096, 1],
  [1, 8, 4, 1920, 3],
  [1, 8, 2.5, 1440, 3],
  [1, 8, 8, 5760, 2],
  [4, 2, 0.5, 4096, 1],
])(
  '%i processes on %i cores with %d GiB and clips of up to %i pixels transcode %i clips of one token at once each',
  (processes, cores, gib, largestSide, slots) => {
    expect(slotsOfProcess(processes, largestSide, { cores, memory: gib * GIB })).toBe(slots)
  },
)
