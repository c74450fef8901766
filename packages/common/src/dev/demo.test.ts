import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'

let dataDir: string
let env: NodeJS.ProcessEnv
let dev: ChildProcess

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
  let output = ''
  dev.stdout?.on('data', (chunk) => {
    output += chunk
  })
  dev.stderr?.on('data', (chunk) => {
    output += chunk
  })
  await expect.poll(() => output).toContain('Ctrl-C stops everything')
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

test('the demo walks through both services that dev has started', async () => {
  const { output, code } = await demo()
  expect(output).toContain('Everything worked.')
  expect(code).toBe(0)
})

test('a step that fails is said and makes the exit code 1', async () => {
  const { output, code } = await demo({ MEDIA_TOKEN: 'mh_no-such-token' })
  expect(output).toContain('✗')
  expect(output).not.toContain('Everything worked.')
  expect(code).toBe(1)
})
