import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { PATIENCE_MS } from '@services/common/testing/patience'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'

/** Environment of a terminal, without settings of the developer's shell or of this run. */
async function startDev(dataDir: string, settings: Record<string, string> = {}) {
  const [port, smtp, web] = await Promise.all([findFreePort(), findFreePort(), findFreePort()])
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const ports = { AUTH_PORT: String(port), INBOX_SMTP_PORT: String(smtp), INBOX_WEB_PORT: String(web) }
  const child = spawn(process.execPath, ['src/dev.ts'], {
    cwd: join(import.meta.dirname, '..'),
    env: { PATH, HOME, NODE_COMPILE_CACHE, DEV_DATA_DIR: dataDir, ...ports, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const ended = once(child, 'exit').then(([code, signal]) => code ?? signal)
  await vi.waitFor(() => expect(output).toContain('Ctrl-C stops it'), PATIENCE_MS)
  const url = `http://127.0.0.1:${port}`
  return {
    banner: output,
    /** The access token of a new anonymous user. */
    async signUp(): Promise<string> {
      const answer = await fetch(`${url}/signup`, { method: 'POST', body: '{}' })
      return ((await answer.json()) as { access_token: string }).access_token
    },
    verify: async (token: string) => {
      const keys = createRemoteJWKSet(new URL(`${url}/.well-known/jwks.json`))
      return (await jwtVerify(token, keys, { audience: 'authenticated' })).payload
    },
    async stop() {
      child.kill('SIGINT')
      expect(await ended).toBe(0)
    },
  }
}

test('a token of dev verifies by the public keys, even after a restart; a given secret signs instead', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'auth-dev-test-'))
  // PostgreSQL runs as another user where this one is root.
  await chmod(dataDir, 0o755)
  const first = await startDev(dataDir)
  const token = await first.signUp()
  expect(await first.verify(token)).toMatchObject({ role: 'authenticated', is_anonymous: true })
  await first.stop()

  const second = await startDev(dataDir)
  expect(await second.verify(token)).toMatchObject({ role: 'authenticated' })
  await second.stop()

  const third = await startDev(dataDir, { AUTH_JWT_SECRET: 'a-secret-that-an-application-verifies-with' })
  const [header = ''] = (await third.signUp()).split('.')
  expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toMatchObject({ alg: 'HS256' })
  await third.stop()
  await rm(dataDir, { recursive: true })
})

test('without hosted pages dev starts without the console, and its banner shows neither', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'auth-dev-test-'))
  await chmod(dataDir, 0o755)
  const dev = await startDev(dataDir, { AUTH_HOSTED_PAGES_ENABLED: 'false' })
  expect(dev.banner).not.toMatch(/\/ui\/|console|admin create/)
  await dev.stop()
  await rm(dataDir, { recursive: true, force: true })
})
