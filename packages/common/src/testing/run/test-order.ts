import { LongestFirst } from './longest-first.ts'

/**
 * Order of files and tests: in a shaken run another for each seed, of the files and of the tests in each, else the
 * fastest.
 */
export const testOrder = (seed = process.env.TEST_SHAKEN) =>
  seed ? { shuffle: { files: true, tests: true }, seed: Number(seed) } : { sequencer: LongestFirst }
