// Rules of imports between folders (design.md 3). Downwards only, so that a folder is understood without those above.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Imports of each file of a folder: paths in that folder, or names of packages. */
type Imports = ReadonlyMap<string, readonly string[]>

const IMPORT = /^(?:import|export)\b[^'"`;]*?from '([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

/** Matches imports of types too: a reader needs them as well. */
function readImports(root: string, paths: readonly string[]): Imports {
  return new Map(paths.map((path) => [path, importsOf(path, readFileSync(posix.join(root, path), 'utf8'))]))
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, stated, loaded]) => {
    const name = stated ?? loaded ?? ''
    return name.startsWith('.') ? posix.join(dirname(path), name) : name
  })
}

/**
 * Finds imports from a layer into one above it. Any file may import files outside all layers (`app.ts`, `errors.ts`).
 */
function upwardImports(imports: Imports, layers: readonly string[]): string[] {
  const layerOf = (path: string) => layers.indexOf(path.split('/', 1)[0] ?? '')
  return edges(imports).flatMap(([from, to]) => {
    const [upper, lower] = [layerOf(to), layerOf(from)]
    return upper >= 0 && lower > upper ? [`${from} -> ${to}`] : []
  })
}

/** Finds pairs of folders that import each other, unless one contains the other. */
function mutualImports(imports: Imports): string[] {
  const folderOf = (path: string) => dirname(path)
  const known = new Set(edges(imports).map(([from, to]) => `${folderOf(from)} ${folderOf(to)}`))
  return [...known].flatMap((pair) => {
    const [from = '', to = ''] = pair.split(' ')
    const isTold = from >= to || from === '.' || to === '.' || to.startsWith(`${from}/`)
    return !isTold && known.has(`${to} ${from}`) ? [`${from} <-> ${to}`] : []
  })
}

function circles(imports: Imports): string[] {
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

const repository = resolve(import.meta.dirname, '..')
const isTest = (path: string) => /\.test\.ts$|(^|\/)(test|testing|testdata)\//.test(path)

function listSources(folder: string): string[] {
  const patterns = ['*.ts', '*.js', '*.mjs']
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: join(repository, folder),
    encoding: 'utf8',
  })
  return listed.split('\n').filter((path) => path !== '' && existsSync(join(repository, folder, path)))
}

const sourcesOf = (folder: string) => listSources(folder).filter((path) => path.endsWith('.ts') && !isTest(path))

/** Layers from the endpoints down to the outside world. Other folders and files serve all. */
const LAYERS = {
  auth: ['console', 'flows', 'http', 'core', 'adapters'],
  media: ['flows', 'http', 'ingest', 'make', 'core', 'ffmpeg', 'store'],
  common: [
    ...['process', 'http', 'pages', 'webhooks', 'queue', 'listen', 'migrations', 'housekeeping', 'database'],
    ...['egress', 'concurrency', 'upstream', 'telemetry', 'config'],
  ],
}

interface Rule {
  of: RegExp
  never: RegExp
  because: string
}

const RULES: Rule[] = [
  {
    of: /^flows\/(?!.*\.(routes|http)\.ts$)/,
    never: /^fastify$|\.routes\.ts$|^app\.ts$/,
    because: 'a flow knows no request: commands and workers call it too',
  },
  {
    of: /^(core|adapters|ingest|make|ffmpeg|store|db)\//,
    never: /^fastify$|^http\/|^app\.ts$/,
    because: 'what is below the routes knows no HTTP',
  },
  { of: /\.store\.ts$/, never: /^fastify$|\.routes\.ts$|^http\//, because: 'a store speaks SQL and nothing else' },
  { of: /^db\//, never: /^(?!db\/)[\w-]+\//, because: 'tables know nothing of their users' },
]

describe.each(['auth', 'media'] as const)('in %s', (service) => {
  const imports = readImports(join(repository, 'services', service, 'src'), sourcesOf(`services/${service}/src`))

  test('layers import downwards only', () => {
    expect(imports.size).toBeGreaterThan(100)
    expect(upwardImports(imports, LAYERS[service])).toEqual([])
  })

  test('no two folders import each other', () => {
    expect(mutualImports(imports)).toEqual([])
  })

  test.each(RULES)('$because', ({ of, never }) => {
    const broken = [...imports].flatMap(([path, targets]) =>
      of.test(path) ? targets.filter((target) => never.test(target)).map((target) => `${path} -> ${target}`) : [],
    )
    expect(broken).toEqual([])
  })

  test('flows do not use each other', () => {
    const flowOf = (path: string) => /^flows\/([^/]+)\//.exec(path)?.[1]
    const sideways = [...imports].flatMap(([path, targets]) =>
      targets
        .filter((target) => flowOf(path) && flowOf(target) && flowOf(path) !== flowOf(target))
        .map((target) => `${path} -> ${target}`),
    )
    expect(sideways).toEqual([])
  })
})

describe('in packages', () => {
  const importsIn = (folder: string) => readImports(join(repository, folder), sourcesOf(folder))

  test('the client of media is published alone: it imports its own files only', () => {
    const imports = importsIn('packages/media-client/src')
    expect(imports.size).toBeGreaterThan(5)
    expect([...imports.values()].flat().filter((target) => !imports.has(target))).toEqual([])
  })

  test('rooms of common import downwards only, and everything lies in one but the leaves', () => {
    const all = importsIn('packages/common/src')
    const imports = new Map([...all].filter(([path]) => !/^(dev|bench)\//.test(path)))
    expect(imports.size).toBeGreaterThan(60)
    expect(upwardImports(imports, LAYERS.common)).toEqual([])
    expect(mutualImports(imports)).toEqual([])
    const leaves = [...imports.keys()].filter((path) => !path.includes('/')).map((path) => path.replace('.ts', ''))
    expect(leaves).toEqual(['errors', 'html', 'list-in-words', 'request-deadline', 'seal'])
  })

  test('common and the services know nothing of the client', () => {
    const all = ['packages/common/src', 'services/auth/src', 'services/media/src'].flatMap((folder) => [
      ...importsIn(folder).values(),
    ])
    expect(all.flat().filter((target) => target.includes('media-client'))).toEqual([])
  })
})

test('no files import each other in a circle, those of tests, benchmarks and development included', () => {
  const imports = readImports(repository, listSources('.'))
  expect(imports.size).toBeGreaterThan(700)
  expect(circles(imports)).toEqual([])
})
