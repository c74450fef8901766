import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { PATIENCE_MS } from '../testing/patience.ts'
import { findFreePort } from './dev-ports.ts'

let dataDir: string
let env: NodeJS.ProcessEnv
let dev: ChildProcess
let output = ''

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'demo-test-'))
  const ports = await Promise.all(Array.from({ length: 4 }, () => findFreePort()))
  const [auth, media, web, smtp] = ports.map(String)
  // Not all of the environment: vitest sets variables of its own in it, as BASE_URL.
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  env = {
    ...{ PATH, HOME, TMPDIR, NODE_COMPILE_CACHE },
    DEV_DATA_DIR: dataDir,
    AUTH_PORT: auth,
    MEDIA_PORT: media,
    INBOX_WEB_PORT: web,
    INBOX_SMTP_PORT: smtp,
  }
  dev = spawn(process.execPath, [join(import.meta.dirname, 'dev-all.ts')], { env })
  dev.stdout?.on('data', (chunk) => {
    output += chunk
  })
  dev.stderr?.on('data', (chunk) => {
    output += chunk
  })
  await vi.waitFor(() => expect(output).toContain('Ctrl-C stops everything'), PATIENCE_MS)
})

afterAll(async () => {
  if (dev.exitCode === null && dev.signalCode === null) {
    dev.kill('SIGINT')
    await once(dev, 'exit')
  }
  await rm(dataDir, { recursive: true, force: true })
})

/** The demo as its own process, beside the running dev services. */
async function demo(settings: Record<string, string> = {}) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'demo.ts')], { env: { ...env, ...settings } })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { output, code }
}

const adminCommand = () =>
  `DEV_DATA_DIR='${dataDir}' npx -y pnpm@12 --silent -C services/auth cli:dev admin create --email you@example.com`

test('the demo walks through both services, their pages included, and shows how to reach the console', async () => {
  const { output, code } = await demo()
  expect(output).toContain('Everything worked.')
  expect(code).toBe(0)
  const url = `http://127.0.0.1:${env.AUTH_PORT}`
  expect(output).toContain(`POST /ui/sign-in             leads to ${url}/ui/account, signed in\n`)
  expect(output).toMatch(/GET \/ui\/account +the account page of demo-\w+@example\.com\n/)
  expect(output).toContain(`open ${url}/console as an administrator`)
  expect(output).toContain(` ${adminCommand()}\n`)
})

test('the demo finds running services by their data alone, and explains what to start', async () => {
  const found = await demo({ AUTH_PORT: '', MEDIA_PORT: '', INBOX_WEB_PORT: '', MEDIA_TOKEN: 'mh_no-such-token' })
  expect(found.output).toContain(`auth  http://127.0.0.1:${env.AUTH_PORT}`)
  expect(found.output).toContain(`media  http://127.0.0.1:${env.MEDIA_PORT}`)
  const nothing = await demo({ DEV_DATA_DIR: join(dataDir, 'elsewhere') })
  expect(nothing.output).toContain(`  ✗ No service runs on the data in ${join(dataDir, 'elsewhere')}. `)
  expect(nothing.code).toBe(1)
})

test('the demo and the commands name a dev that runs on another data folder', async () => {
  const elsewhere = { DEV_DATA_DIR: join(dataDir, 'elsewhere') }
  // Other tests may run a dev of this clone at the same time, which is named as well.
  const named = new RegExp(`Dev runs with (DEV_DATA_DIR='[^']+' and with )*DEV_DATA_DIR='${dataDir}'`)
  expect((await demo(elsewhere)).output).toMatch(named)
  const cwd = join(import.meta.dirname, '../../../../services/auth')
  const child = spawn(process.execPath, [join(import.meta.dirname, 'cli-dev.ts'), 'users', 'list'], {
    cwd,
    env: { ...env, ...elsewhere },
  })
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  expect({ code, said }).toEqual({ code: 78, said: expect.stringMatching(named) })
})

test('dev prints its banner and no log line that a new user can do nothing about', () => {
  expect(output.trim()).toMatch(/^─+\nauth\n[\s\S]+Ctrl-C stops everything\.\n─+$/)
})

test('the banner of dev shows the hosted pages, the console and the command for its administrator', () => {
  const url = `http://127.0.0.1:${env.AUTH_PORT}`
  for (const line of [`sign-in  ${url}/ui/sign-in`, `console  ${url}/console`, `admin    ${adminCommand()}`])
    expect(output).toContain(`  ${line}\n`)
})

test('a failed step is printed and makes the exit code 1', async () => {
  const { output, code } = await demo({ MEDIA_TOKEN: 'mh_no-such-token' })
  expect(output).toContain('✗')
  expect(output).not.toContain('Everything worked.')
  expect(code).toBe(1)
})
