import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Whether .dockerignore lets a path (from the root of the context, with slashes) into the build: the last line that fits decides. */
export function readDockerignore(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }))
  return (path) => rules.findLast(({ pattern }) => pattern.test(path))?.keeps ?? true
}

/** `*` and `?` stay within one name, `**` does not; what fits a folder fits all that is in it. */
function patternOf(glob: string): RegExp {
  const source = glob
    .replace(/^\/|\/$/g, '')
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => WILDCARDS[part] ?? part.replace(/[.+^${}()|[\]\\]/g, '\\$&'))
    .join('')
  return new RegExp(`^${source}(?:/.*)?$`)
}

const WILDCARDS: Record<string, string> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }

/** The files that COPY of this source would take, by their paths from the root of the context. Throws when there are none. */
export function contextFiles(root: string, source: string): string[] {
  const keeps = readDockerignore(readFileSync(join(root, '.dockerignore'), 'utf8'))
  const files = filesBelow(root, source.replace(/\/$/, '')).filter(keeps)
  if (files.length === 0) throw new Error(`COPY ${source}: nothing of that name is in the build`)
  return files
}

function filesBelow(root: string, path: string): string[] {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  if (!found) return []
  if (!found.isDirectory()) return [path]
  return readdirSync(join(root, path), { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && name !== '.git')
    .flatMap(({ name }) => filesBelow(root, join(path, name)))
}
