import manifest from '../package.json' with { type: 'json' }

/** Node's switches of `pnpm start`, from the one place where they are: what is measured and tested is what runs. */
export const startFlags = manifest.scripts.start.split(' ').filter((word) => word.startsWith('--'))
