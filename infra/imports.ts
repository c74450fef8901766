import { readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'

/** Imports of each file of a folder: paths in that folder, or names of packages. */
export type Imports = ReadonlyMap<string, readonly string[]>

const IMPORT = /^(?:import|export)\b[^'"`;]*?from '([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

/** Matches imports of types too: a reader needs them as well. */
export function readImports(root: string, paths: readonly string[]): Imports {
  return new Map(paths.map((path) => [path, importsOf(path, readFileSync(posix.join(root, path), 'utf8'))]))
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, stated, loaded]) => {
    const name = stated ?? loaded ?? ''
    return name.startsWith('.') ? posix.join(dirname(path), name) : name
  })
}

/** Finds imports from a layer into one above it. Any file may import files outside all layers (`app.ts`, `errors.ts`). */
export function upwardImports(imports: Imports, layers: readonly string[]): string[] {
  const layerOf = (path: string) => layers.indexOf(path.split('/', 1)[0] ?? '')
  return edges(imports).flatMap(([from, to]) => {
    const [upper, lower] = [layerOf(to), layerOf(from)]
    return upper >= 0 && lower > upper ? [`${from} -> ${to}`] : []
  })
}

/** Finds pairs of folders that import each other, unless one contains the other. */
export function mutualImports(imports: Imports): string[] {
  const folderOf = (path: string) => dirname(path)
  const known = new Set(edges(imports).map(([from, to]) => `${folderOf(from)} ${folderOf(to)}`))
  return [...known].flatMap((pair) => {
    const [from = '', to = ''] = pair.split(' ')
    const isTold = from >= to || from === '.' || to === '.' || to.startsWith(`${from}/`)
    return !isTold && known.has(`${to} ${from}`) ? [`${from} <-> ${to}`] : []
  })
}

/** Finds circles of files, each once. */
export function circles(imports: Imports): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const visit = (path: string, way: readonly string[]) => {
    if (way.includes(path)) found.push([...way.slice(way.indexOf(path)), path].join(' -> '))
    if (done.has(path) || way.includes(path)) return
    for (const next of imports.get(path) ?? []) if (imports.has(next)) visit(next, [...way, path])
    done.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
  return found
}

const edges = (imports: Imports) =>
  [...imports].flatMap(([from, targets]) => targets.filter((to) => imports.has(to)).map((to) => [from, to] as const))
