import manifest from '../package.json' with { type: 'json' }

/** Node's switches of `pnpm start`, read from its script: benchmarks and tests run with the same ones. */
export const startFlags = manifest.scripts.start.split(' ').filter((word) => word.startsWith('--'))
