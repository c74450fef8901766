import { defineConfig } from 'vitest/config'

// More workers than two cores, because processes, databases and slow far sides are waited for; by measurement.
const IN_MEMORY = { maxWorkers: 3, sequence: { groupOrder: 0 } }
const WAITING = { maxWorkers: 4, sequence: { groupOrder: 1 } }

/** One project per package, so that `vitest run --project auth` runs one alone. */
export default defineConfig({
  test: {
    globalSetup: ['packages/common/src/testing/global-setup.ts'],
    // Our modules keep no state of their own, so files may share them: a third of the run would go into loading them again.
    isolate: false,
    testTimeout: 15_000,
    hookTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: { name: 'auth', root: 'services/auth', include: ['{src,test}/**/*.test.ts'], ...IN_MEMORY },
      },
      { extends: true, test: { name: 'common', root: 'packages/common', include: ['src/**/*.test.ts'], ...WAITING } },
      { extends: true, test: { name: 'infra', root: 'infra', include: ['**/*.test.ts'], ...IN_MEMORY } },
      {
        extends: true,
        test: {
          name: 'docs',
          root: 'docs',
          include: ['*.test.ts'],
          globalSetup: [`${import.meta.dirname}/docs/testing/global-setup.ts`],
          ...WAITING,
        },
      },
      {
        extends: true,
        test: { name: 'media', root: 'services/media', include: ['{src,test}/**/*.test.ts'], ...WAITING },
      },
      // What kills, fills and starves: minutes of waiting, so a command of its own (`pnpm test:faults`).
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
