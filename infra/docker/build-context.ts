import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Whether .dockerignore keeps a path of the build context: the last matching line of .dockerignore decides. */
export function readDockerignore(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }))
  return (path) => rules.findLast(({ pattern }) => pattern.test(path))?.keeps ?? true
}

/** `*` and `?` match within a name, `**` across folders; a folder's pattern matches its contents. */
function patternOf(glob: string): RegExp {
  const source = glob
    .replace(/^\/|\/$/g, '')
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((part) => WILDCARDS[part] ?? part.replace(/[.+^${}()|[\]\\]/g, '\\$&'))
    .join('')
  return new RegExp(`^${source}(?:/.*)?$`)
}

const WILDCARDS: Record<string, string> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }

/** Lists the files that COPY would take from this source; throws when there are none. */
export function contextFiles(root: string, source: string): string[] {
  const keeps = readDockerignore(readFileSync(join(root, '.dockerignore'), 'utf8'))
  const files = filesBelow(root, source.replace(/\/$/, '')).filter(keeps)
  if (files.length === 0) throw new Error(`COPY ${source}: not in the build context`)
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
