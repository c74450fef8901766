// The Dockerfiles and .dockerignore, read without Docker. The parser refuses syntax that ours do not use. CI builds the
// images for real.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Whether .dockerignore keeps a path of the build context: the last matching line of .dockerignore decides. */
function readDockerignore(text: string): (path: string) => boolean {
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
function contextFiles(root: string, source: string): string[] {
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

interface Instruction {
  keyword: string
  flags: Record<string, string>
  /** Arguments, in one line. */
  text: string
  line: number
}

interface Stage {
  name: string
  from: string
  instructions: Instruction[]
}

const KEYWORDS = new Set(
  'ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN STOPSIGNAL USER WORKDIR'.split(' '),
)

function parseDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  for (const instruction of readInstructions(text)) {
    if (instruction.keyword === 'FROM') {
      const [, from = '', name = String(stages.length)] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(instruction.text) ?? []
      if (!from) throw new Error(`line ${instruction.line}: FROM ${instruction.text}`)
      stages.push({ name, from, instructions: [] })
      continue
    }
    const stage = stages.at(-1)
    if (!stage) throw new Error(`line ${instruction.line}: ${instruction.keyword} before FROM`)
    stage.instructions.push(instruction)
  }
  return stages
}

/** Collects the instructions of a stage after those of its base stages, and the base image. */
function lineage(stages: Stage[], name: string): { image: string; instructions: Instruction[] } {
  const stage = stages.find((each) => each.name === name)
  if (!stage) return { image: name, instructions: [] }
  const below = lineage(stages, stage.from)
  return { image: below.image, instructions: [...below.instructions, ...stage.instructions] }
}

function readInstructions(text: string): Instruction[] {
  const found: Instruction[] = []
  let pending = ''
  let begun = 0
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*#/.test(line) || (pending === '' && line.trim() === '')) continue
    if (pending === '') begun = index + 1
    pending += line.replace(/\\$/, ' ')
    if (line.endsWith('\\')) continue
    found.push(readInstruction(pending.trim(), begun))
    pending = ''
  }
  if (pending !== '') throw new Error(`line ${begun}: the last instruction does not end`)
  return found
}

function readInstruction(line: string, number: number): Instruction {
  const keyword = /^\S+/.exec(line)?.[0] ?? ''
  if (!KEYWORDS.has(keyword)) throw new Error(`line ${number}: ${keyword} is not supported here`)
  let text = line.slice(keyword.length).trim()
  const flags: Record<string, string> = {}
  for (let flag = /^--([a-z-]+)=(\S+)\s+/.exec(text); flag; flag = /^--([a-z-]+)=(\S+)\s+/.exec(text)) {
    flags[flag[1] as string] = flag[2] as string
    text = text.slice(flag[0].length)
  }
  return { keyword, flags, text, line: number }
}

/** Parses `A=1 B="two words"` of ENV, ARG and LABEL; ARG may omit the value. */
function pairsOf(text: string): [name: string, value: string | undefined][] {
  return [...text.matchAll(/([\w.-]+)(?:=("(?:[^"\\]|\\.)*"|\S*))?(?:\s+|$)/g)].map(([, name = '', value]) => [
    name,
    value?.replace(/^"(.*)"$/, '$1'),
  ])
}

const repository = resolve(import.meta.dirname, '../..')
const services = ['auth', 'media'].filter((name) => existsSync(join(repository, 'services', name)))
const read = (path: string) => readFileSync(join(repository, path), 'utf8')
const ignore = readDockerignore(read('.dockerignore'))

describe.each(services)('the image of %s', (service) => {
  const stages = parseDockerfile(read(`infra/docker/${service}.Dockerfile`))
  const { image, instructions } = lineage(stages, stages.at(-1)?.name ?? '')
  const all = stages.flatMap((stage) => stage.instructions)
  const last = (keyword: string) => instructions.findLast((each) => each.keyword === keyword)?.text
  const copies = all.filter(({ keyword, flags }) => keyword === 'COPY' && !flags.from)
  const sources = copies.flatMap(({ text }) => text.split(/\s+/).slice(0, -1))

  test("has one base, pinned by version and digest, with the workspace's Node", () => {
    expect(stages.map(({ from }) => from).filter((from) => from !== 'base')).toEqual([image])
    const version = /^node:([\d.]+)-trixie-slim@sha256:[0-9a-f]{64}$/.exec(image)?.[1]
    expect(JSON.parse(read('package.json')).dependencies['node-bin']).toBe(`npm:node@${version}`)
  })

  test('copies existing files, none of the other service and no tests', () => {
    const files = sources.flatMap((source) => contextFiles(repository, source))
    expect(files).toContain(`services/${service}/src/main.ts`)
    expect(files).toContain('packages/common/src/config/variables.ts')
    const allowed = new RegExp(
      `^(LICENSE|package.json|pnpm-[a-z]+.yaml|infra/bundle/(bundle.ts|package.json)|(packages/common|services/${service})/.+)$`,
    )
    expect(files.filter((file) => !allowed.test(file))).toEqual([])
    const forTests = /\.test\.ts$|\/(test|testing|testdata|bench|dev)\/|\/dev\.ts$|node_modules|\.env|\.md$/
    expect(files.filter((file) => forTests.test(file))).toEqual([])
  })

  test('runs its own service as 10001 with the flags of `pnpm start`', () => {
    const { start } = JSON.parse(read(`services/${service}/package.json`)).scripts
    const env = Object.fromEntries(instructions.filter(isEnv).flatMap(({ text }) => pairsOf(text)))
    const [, name = '', value, flags] =
      / (MALLOC_ARENA_MAX|GLIBC_TUNABLES)=(\S+) node ((?:--\S+ )*)src\/main\.ts$/.exec(start) ?? []
    expect(env).toMatchObject({ NODE_OPTIONS: `${flags?.trim()} --enable-source-maps`, [name]: value })
    expect(last('USER')).toBe('10001:10001')
    expect(last('WORKDIR')).toBe('/app')
    expect(JSON.parse(last('CMD') ?? '')).toEqual(['node', 'dist/main.js'])
    expect(last('STOPSIGNAL')).toBe('SIGTERM')
  })

  test('checks health on the default port and exposes it', async () => {
    const { variables } = await import(`../../services/${service}/src/config.ts`)
    const [port, metrics] = [variables.PORT.default, variables.OTEL_EXPORTER_PROMETHEUS_PORT.default]
    expect(last('EXPOSE')).toBe(`${port} ${metrics}`)
    const [, script = ''] = /CMD \["node", "-e", "(.*)"\]$/.exec(last('HEALTHCHECK') ?? '') ?? []
    expect(script).toContain(`|| ${port}, path: '/health/live'`)
    for (const name of [`${service.toUpperCase()}_PORT`, 'PORT', ...(variables.PORT.aliases ?? [])]) {
      expect(script).toContain(name)
    }
  })

  test('has the labels of the Open Container Initiative', () => {
    const labels = pairsOf(last('LABEL') ?? '').map(([name]) => name.replace('org.opencontainers.image.', ''))
    expect(labels.sort()).toEqual(['description', 'licenses', 'revision', 'source', 'title', 'version'])
  })

  test('installs the lockfile for production without package scripts', () => {
    const install = all.find(({ text }) => text.includes('pnpm install'))?.text ?? ''
    expect(install).toMatch(/--frozen-lockfile --prod --ignore-scripts/)
    expect(install).toContain(`--filter "@services/${service}..."`)
  })
})

test('both images are built with one pnpm', () => {
  const versions = services.map((name) => /PNPM_VERSION=(.*)/.exec(read(`infra/docker/${name}.Dockerfile`))?.[1])
  expect(new Set(versions).size).toBe(1)
})

test.each([
  ['services/auth/src/main.ts', true],
  ['services/auth/src/config.test.ts', false],
  ['services/auth/src/dev.ts', false],
  ['services/media/src/probe/testdata/a.txt', false],
  ['packages/common/src/dev/inbox.ts', false],
  ['packages/common/node_modules/pg/index.js', false],
  ['services/auth/.env', false],
  ['.git/config', false],
  ['.npmrc', false],
  ['shared/notes.md', false],
])('.dockerignore keeps %s: %s', (path, kept) => {
  expect(ignore(path)).toBe(kept)
})

describe('a Dockerfile', () => {
  test('is parsed with continued lines, comments, flags and stages', () => {
    const [first, second] = parseDockerfile(
      'FROM a:1 AS build\nRUN --mount=type=cache,id=x,target=/y one \\\n  # why\n  && two\n\nFROM build\nCMD ["node"]\n',
    )
    expect(first).toMatchObject({ name: 'build', from: 'a:1' })
    expect(first?.instructions[0]).toMatchObject({ flags: { mount: 'type=cache,id=x,target=/y' }, line: 2 })
    expect(first?.instructions[0]?.text.replaceAll(/\s+/g, ' ')).toBe('one && two')
    expect(second).toMatchObject({ name: '1', from: 'build' })
  })

  test.each(['ADD a b', 'FROM a:1\nSHELL ["sh"]', 'RUN before', 'FROM a:1\nRUN never \\'])(
    'with unsupported syntax is refused: %j',
    (text) => {
      expect(() => parseDockerfile(text)).toThrow(/line \d/)
    },
  )

  test('that copies files outside the build context is refused', () => {
    expect(() => contextFiles(repository, 'docs')).toThrow('not in the build context')
    expect(() => contextFiles(repository, 'services/nobody')).toThrow('not in the build context')
  })
})

const isEnv = ({ keyword }: Instruction) => keyword === 'ENV'
