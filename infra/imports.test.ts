// Rules of imports between folders (design.md 3). The one rule: downwards only, so that a folder is understood without those above.
import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { circles, mutualImports, readImports, upwardImports } from './imports.ts'

const repository = resolve(import.meta.dirname, '..')
const isTest = (path: string) => /\.test\.ts$|(^|\/)(test|testing|testdata)\//.test(path)

function sourcesOf(folder: string): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
    cwd: join(repository, folder),
    encoding: 'utf8',
  })
  return listed.split('\n').filter((path) => path !== '' && !isTest(path))
}

/** Layers from the endpoints down to the outside world. Other folders and files serve all. */
const LAYERS = {
  auth: ['flows', 'http', 'core', 'adapters'],
  media: ['flows', 'http', 'ingest', 'make', 'core', 'ffmpeg', 'store'],
}

interface Rule {
  of: RegExp
  but?: RegExp
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

  test('no files import each other in a circle', () => {
    expect(circles(imports)).toEqual([])
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
