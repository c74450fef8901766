import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { contextFiles, readDockerignore } from './build-context.ts'
import { type Instruction, lineage, pairsOf, parseDockerfile } from './dockerfile.ts'

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
    expect(files).toContain('packages/common/src/config.ts')
    const allowed = new RegExp(`^(LICENSE|package.json|pnpm-[a-z]+.yaml|(packages/common|services/${service})/.+)$`)
    expect(files.filter((file) => !allowed.test(file))).toEqual([])
    const forTests = /\.test\.ts$|\/(test|testing|testdata|bench|dev)\/|\/dev\.ts$|node_modules|\.env|\.md$/
    expect(files.filter((file) => forTests.test(file))).toEqual([])
  })

  test('runs its own service as 10001 with the flags of `pnpm start`', () => {
    const { start } = JSON.parse(read(`services/${service}/package.json`)).scripts
    const env = Object.fromEntries(instructions.filter(isEnv).flatMap(({ text }) => pairsOf(text)))
    const [, arenas, flags] = /MALLOC_ARENA_MAX=(\d+) node ((?:--\S+ )*)src\/main\.ts$/.exec(start) ?? []
    expect(env).toMatchObject({ NODE_OPTIONS: flags?.trim(), MALLOC_ARENA_MAX: arenas })
    expect(last('USER')).toBe('10001:10001')
    expect(last('WORKDIR')).toBe(`/app/services/${service}`)
    expect(JSON.parse(last('CMD') ?? '')).toEqual(['node', 'src/main.ts'])
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
    expect(() => contextFiles(repository, 'infra')).toThrow('not in the build context')
    expect(() => contextFiles(repository, 'services/nobody')).toThrow('not in the build context')
  })
})

const isEnv = ({ keyword }: Instruction) => keyword === 'ENV'
