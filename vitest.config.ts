import { defineConfig } from 'vitest/config'

/** One project per package, so that `vitest run --project auth` runs one alone. */
export default defineConfig({
  test: {
    globalSetup: ['packages/common/src/testing/global-setup.ts'],
    // Real databases, processes and ffmpeg wait for each other more than for a core.
    maxWorkers: 3,
    // Our modules keep no state of their own, so files may share them: a third of the run would go into loading them again.
    isolate: false,
    testTimeout: 15_000,
    hookTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'common', root: 'packages/common', include: ['src/**/*.test.ts'] } },
      { extends: true, test: { name: 'auth', root: 'services/auth', include: ['{src,test}/**/*.test.ts'] } },
      { extends: true, test: { name: 'media', root: 'services/media', include: ['{src,test}/**/*.test.ts'] } },
    ],
  },
})
