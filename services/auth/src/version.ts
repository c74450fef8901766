import { readFileSync } from 'node:fs'

/** Version of this service, independent of the other one's. */
export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
