import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../../../..')

/** Path of a program of a service: its source, or with TEST_BUNDLE=1 (`pnpm test:bundle`) the bundle of its image. */
export const programOf = (service: 'auth' | 'media', name: 'main' | 'cli'): string =>
  process.env.TEST_BUNDLE
    ? join(root, 'node_modules/.cache/bundle', service, 'dist', `${name}.js`)
    : join(root, 'services', service, 'src', `${name}.ts`)
