import { expect, test } from 'vitest'
import { slotsOfProcess } from './workers.ts'

const GIB = 1024 ** 3

test.each([
  [1, 2, 16, 2],
  [1, 8, 16, 8],
  [2, 8, 16, 4],
  // Memory for four clips: three, and the slot for other tokens.
  [1, 8, 4, 3],
  [2, 8, 4, 1],
  [1, 8, 2.5, 1],
  [4, 2, 0.5, 1],
])(
  '%i processes on %i cores with %d GiB transcode %i clips of one token at once each',
  (processes, cores, gib, slots) => {
    expect(slotsOfProcess(processes, { cores, memory: gib * GIB })).toBe(slots)
  },
)
