import { extname, join } from 'node:path'

/** Path of a module beside the caller's, to be run as a program; in a bundle both are JavaScript. */
export const moduleBeside = ({ dirname, filename }: ImportMeta, name: string): string =>
  join(dirname, `${name}${extname(filename)}`)
