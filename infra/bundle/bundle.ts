// The bundle of a service, for its image: `node infra/bundle/bundle.ts auth OUT` writes `OUT/dist` (programs),
// `migrations`, `package.json`, `LICENSES` and `node_modules` (packages that cannot be bundled). It needs half the CPU
// of the sources to start and 25 MiB less memory. No source knows that it is bundled, so files read by path lie where
// it expects them. Tests: bundle.slow.test.ts; the slow tests that start processes, with TEST_BUNDLE=1. Used by:
// docker/*.Dockerfile.
import { cp, mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { decode, encode } from '@jridgewell/sourcemap-codec'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'

const root = resolve(import.meta.dirname, '../..')

interface Parts {
  /** Modules that are started or imported by path. */
  entries: Record<string, string>
  /** Files that modules read from beside them. */
  files: string[]
  /** Packages with native code, which stay outside; those that are not installed are left out. */
  packages: string[]
  /** Files of packages that are read from their own folder, which is found by the package's name. */
  packageFiles: Record<string, string[]>
}

const common = join(root, 'packages/common/src')
const docsPage = { '@fastify/swagger-ui': ['static'] }
const PARTS: Record<string, Parts> = {
  auth: {
    entries: { main: 'main.ts', cli: 'cli.ts', serve: 'serve.ts' },
    files: [
      join(root, 'services/auth/src/core/passwords/common-passwords.txt'),
      join(root, 'services/auth/src/console/browser'),
      // Pages look for the files of both in one folder here.
      join(common, 'pages/assets'),
      join(root, 'services/auth/src/http/pages/assets'),
      join(common, 'http/api-docs'),
    ],
    packages: ['argon2', 'bcrypt'],
    // Node resolves the package to its own variant, beside which lies that of browsers.
    packageFiles: { ...docsPage, 'lit-html': ['lit-html.js', 'node/lit-html.js'] },
  },
  media: {
    entries: {
      ...{ main: 'main.ts', cli: 'cli.ts', serve: 'serve.ts' },
      'gif-program': 'make/gif/gif-program.ts',
      'animation-program': 'make/animation/animation-program.ts',
      'manifest-reader': 'ingest/manifests/manifest-reader.ts',
      'proxy-bridge': 'ingest/ytdlp/proxy-bridge.ts',
    },
    // Pages look for the files of the kit and their own in one folder here.
    files: [
      join(common, 'pages/assets'),
      join(root, 'services/media/src/flows/pages/assets'),
      join(common, 'http/api-docs'),
    ],
    packages: ['@ffmpeg-installer/ffmpeg', '@ffprobe-installer/ffprobe', 'sharp'],
    packageFiles: {
      ...docsPage,
      'dejavu-fonts-ttf': ['ttf/DejaVuSansCondensed-Bold.ttf'],
      'lit-html': ['lit-html.js', 'node/lit-html.js'],
      thumbhash: ['thumbhash.js'],
    },
  },
}

export async function bundle(service: string, out: string): Promise<void> {
  const parts = PARTS[service]
  if (!parts) throw new Error(`no such service: ${service}`)
  const folder = join(root, 'services', service)
  await removeBundle(out)
  await mkdir(join(out, 'dist'), { recursive: true })
  const bundled = await bundlePrograms(folder, join(out, 'dist'), parts)
  for (const file of parts.files) await cp(file, join(out, 'dist', basename(file)), { recursive: true })
  for (const name of ['migrations', 'package.json']) await cp(join(folder, name), join(out, name), { recursive: true })
  const modules = join(out, 'node_modules')
  const copied = await copyPackages(parts.packages, folder, modules)
  for (const [name, files] of Object.entries(parts.packageFiles)) {
    copied.push(await copyPackageFiles(name, files, { importers: [folder, common], into: modules }))
  }
  await writeFile(join(out, 'LICENSES'), await licensesOf([...new Set([...bundled, ...copied])]))
}

/** Removes an earlier bundle; throws for any other folder with files, which a mistyped path may name. */
async function removeBundle(out: string): Promise<void> {
  const files = await readdir(out).catch((): string[] => [])
  if (files.length > 0 && !files.includes('LICENSES')) throw new Error(`${out} has files and is no bundle`)
  await rm(out, { recursive: true, force: true })
}

/** Returns the folders of all packages in the bundle. */
async function bundlePrograms(folder: string, dir: string, { entries, packages }: Parts): Promise<string[]> {
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, join(folder, 'src', path)])),
    platform: 'node',
    external: packages,
    // CommonJS packages that look for files beside them, which only unused ones do.
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
  })
  // One character of another script makes V8 keep a whole module with two bytes for each: 2 MiB more for auth.
  const { output } = await build.write({
    dir,
    sourcemap: true,
    minify: true,
    charset: 'ascii',
    plugins: [ownSourcesOnly],
  })
  const modules = output.filter((each) => each.type === 'chunk').flatMap(({ moduleIds }) => moduleIds)
  return [...new Set(modules.flatMap((id) => packageOf(id) ?? []))]
}

const packageOf = (path: string) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]

/**
 * Keeps the lines of our own sources in the source maps, for stack traces; those of all packages would take 15 MiB of
 * memory.
 */
const ownSourcesOnly: Plugin = {
  name: 'own-sources-only',
  generateBundle(_options, output) {
    const chunks = Object.values(output).filter((file): file is OutputChunk => file.type === 'chunk')
    for (const { sourcemapFileName } of chunks) {
      const file = output[sourcemapFileName ?? '']
      if (file?.type !== 'asset') continue
      const map = JSON.parse(String(file.source)) as { mappings: string; sources: string[]; sourcesContent?: string[] }
      const isOwn = map.sources.map((source) => !source.includes('node_modules'))
      const lines = decode(map.mappings).map((line) => line.filter((segment) => isOwn[segment[1] ?? -1]))
      delete map.sourcesContent
      file.source = JSON.stringify({ ...map, mappings: encode(lines) })
    }
  },
}

/** Packages that only compiling needs; ours come compiled. */
const FOR_COMPILING = new Set(['cross-env', 'node-addon-api'])

/** Copies packages with all they depend on; returns the folders they came from. */
async function copyPackages(names: string[], importer: string, into: string): Promise<string[]> {
  const copied = new Map<string, string>()
  const copy = async (name: string, dependent: string) => {
    const from = FOR_COMPILING.has(name) || copied.has(name) ? undefined : await locate(name, dependent)
    if (!from) return
    copied.set(name, from)
    await cp(from, join(into, name), { recursive: true, filter: isRun })
    const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'))
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) await copy(dependency, from)
  }
  for (const name of names) await copy(name, importer)
  return [...copied.values()]
}

/** Copies some files of a package and returns the folder it came from. */
async function copyPackageFiles(
  name: string,
  files: string[],
  { importers, into }: { importers: string[]; into: string },
): Promise<string> {
  const found = await Promise.all(importers.map((importer) => locate(name, importer)))
  const from = found.find((folder) => folder !== undefined)
  if (!from) throw new Error(`${name} is not installed`)
  for (const file of ['package.json', ...files]) {
    await cp(join(from, file), join(into, name, file), { recursive: true, filter: isRun })
  }
  return from
}

/** The folder of a package as Node finds it from a module of `importer`, without links. */
async function locate(name: string, importer: string): Promise<string | undefined> {
  for (let folder = importer; folder !== dirname(folder); folder = dirname(folder)) {
    const found = await realpath(join(folder, 'node_modules', name)).catch(() => undefined)
    if (found) return found
  }
  return undefined
}

/** Leaves out types, source maps, sources of native code, linked dependencies and binaries for other systems. */
const isRun = (path: string): boolean =>
  !/\.(d\.[cm]?ts|map|gyp|cpp|cc|h|c)$|\/argon2\/argon2$/.test(path) &&
  !/\/node_modules$/.test(path) &&
  (!/\/prebuilds\/./.test(path) ||
    (path.includes(`/prebuilds/${process.platform}-${process.arch}`) && !path.endsWith('.musl.node')))

async function licensesOf(packages: string[]): Promise<string> {
  const texts = await Promise.all(
    packages.toSorted().map(async (folder) => {
      const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
      const files = (await readdir(folder, { withFileTypes: true })).filter(
        (file) => file.isFile() && /^(licen[cs]e|copying|notice)/i.test(file.name),
      )
      const bodies = await Promise.all(files.map((file) => readFile(join(folder, file.name), 'utf8')))
      return [`${name} ${version} (${license})`, ...bodies].join('\n\n')
    }),
  )
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

if (import.meta.main) {
  const [service, out] = process.argv.slice(2)
  if (!service || !out) throw new Error('usage: node infra/bundle/bundle.ts SERVICE FOLDER')
  await bundle(service, resolve(out))
}
