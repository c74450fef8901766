import { defineConfig } from 'vitest/config'
import { NEED_TAGS } from './packages/common/src/testing/run/needs.ts'
import { testOrder } from './packages/common/src/testing/run/test-order.ts'

/**
 * Packages whose tests stand beside their code, with the folders that hold them. No project has a root of its own: it
 * would read this file again and transform all modules again.
 */
const PACKAGES = [
  { name: 'auth', folders: 'services/auth/{src,test}' },
  { name: 'common', folders: 'packages/common/src' },
  { name: 'infra', folders: 'infra' },
  { name: 'media', folders: 'services/media/{src,test}' },
  { name: 'media-client', folders: 'packages/media-client/src' },
]

const SLOW = '**/*.slow.test.ts'
const NOT_OURS = '**/node_modules/**'

/**
 * One worker more than two cores, as tests wait for databases and programs. Each one more loads and compiles the
 * service again: 3 s of processor time per project. Slow tests wait longer: four workers left a third idle.
 */
const WORKERS = 3
const SLOW_WORKERS = 6

/**
 * Two tiers. `test`, projects `auth`, `common`, `infra`, `media` and `media-client`: tests that every change must pass.
 * `test:slow`, projects `*:slow` and `docs`: tests that spawn processes, open browsers, send hostile input, export
 * telemetry or wait in real time.
 */
export default defineConfig({
  test: {
    globalSetup: ['packages/common/src/testing/run/global-setup.ts'],
    reporters: [`${import.meta.dirname}/packages/common/src/testing/run/run-reporter.ts`],
    tags: NEED_TAGS,
    sequence: testOrder(),
    // The log of a passing test is noise.
    silent: 'passed-only',
    // A third of the run would go into loading the same modules for each file. They keep no state of their own.
    isolate: false,
    setupFiles: process.env.TEST_SHAKEN ? [`${import.meta.dirname}/packages/common/src/testing/run/disturb.ts`] : [],
    // Limits only end hanging tests, so they are generous enough for a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    projects: [
      ...PACKAGES.flatMap(({ name, folders }) => [
        {
          extends: true as const,
          test: {
            name,
            include: [`${folders}/**/*.test.ts`],
            exclude: [SLOW, NOT_OURS],
            maxWorkers: WORKERS,
            sequence: { groupOrder: 0 },
          },
        },
        {
          extends: true as const,
          test: {
            name: `${name}:slow`,
            include: [`${folders}/${SLOW}`],
            maxWorkers: SLOW_WORKERS,
            sequence: { groupOrder: 1 },
          },
        },
      ]),
      {
        extends: true,
        test: {
          name: 'docs',
          include: ['docs/*.test.ts'],
          globalSetup: [`${import.meta.dirname}/docs/testing/global-setup.ts`],
          maxWorkers: SLOW_WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      // Tests that kill, fill and starve take minutes, so they have a separate command (`pnpm test:faults`).
      {
        extends: true,
        test: {
          name: 'faults',
          include: ['services/*/faults/**/*.test.ts'],
          maxWorkers: 1,
          isolate: true,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
