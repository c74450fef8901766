import { readFileSync } from 'node:fs'

/** The service's own version, independent of the other service's. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
