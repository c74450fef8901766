import { defineConfig } from 'vitest/config'

/** One project per package, so that `vitest run --project auth` runs one alone. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'common', root: 'packages/common', include: ['src/**/*.test.ts'] } },
      { test: { name: 'auth', root: 'services/auth', include: ['{src,test}/**/*.test.ts'] } },
      { test: { name: 'media', root: 'services/media', include: ['{src,test}/**/*.test.ts'] } },
    ],
  },
})
