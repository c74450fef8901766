import { resolve } from 'node:path'

/**
 * Resolves a path as it was typed: package managers run the scripts `cli` and `demo` in another folder than the
 * caller's.
 */
export function typedPath(
  path: string,
  { npm_lifecycle_event: script = '', INIT_CWD: folder = '.' } = process.env,
): string {
  return resolve(/^(cli(:dev)?|demo)$/.test(script) ? folder : '.', path)
}
