import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { findFreePort } from '../packages/common/src/dev/dev-ports.ts'
import { confirmByMail } from './testing/confirm-by-mail.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { authUrl } = inject('devServices')
const guide = openGuide('connect-a-web-application.md')
let shell: Shell

beforeAll(async () => {
  shell = await openShell()
  // The two libraries of `npm install`, as this repository has them.
  const libraries = join(import.meta.dirname, '../services/auth/node_modules')
  await symlink(libraries, join(shell.folder, 'node_modules'))
  await shell.write('package.json', '{"type":"module"}')
})
afterAll(() => shell.close())

interface Session {
  auth: {
    exchangeCodeForSession(code: string): Promise<{ error: unknown }>
    stopAutoRefresh(): Promise<void>
  }
  signUp(email: string, password: string): Promise<void>
  signIn(email: string, password: string): Promise<{ id: string }>
  call(url: string): Promise<Response>
  signOut(): Promise<unknown>
}

test('the example: a browser signs up and in, and a server knows who asks by the public keys alone', async () => {
  guide.leave('AUTH_JWT_KEYS', 'docs/testing/global-setup.ts')
  const port = await findFreePort()
  await shell.write('session.js', guide.file('session.js', { 'http://127.0.0.1:8081': authUrl }))
  const server = guide.file('server.js', { 'listen(3000)': `listen(port, () => console.log('listening'))` })
  const serve = (file: string, on: number, issuer: string) =>
    shell.write(file, `const port = ${on}\n${server.replace('http://127.0.0.1:8081', issuer)}`)
  await serve('server.js', port, authUrl)
  await shell.start(guide.take('node server.js')).says(/listening/)
  const api = `http://127.0.0.1:${port}/`
  const events = vi.spyOn(console, 'log').mockImplementation(() => {})
  const session: Session = await import(pathToFileURL(join(shell.folder, 'session.js')).href)

  await session.signUp('barbara@example.com', 'correct horse')
  const welcome = await confirmByMail('barbara@example.com')
  expect(welcome.href).toContain('http://localhost:3000/welcome?code=')
  // What the library does by itself where there is an address bar.
  const code = String(welcome.searchParams.get('code'))
  expect((await session.auth.exchangeCodeForSession(code)).error).toBeNull()
  const user = await session.signIn('barbara@example.com', 'correct horse')

  const known = await session.call(api)
  expect([known.status, await known.json()]).toEqual([
    200,
    { id: user.id, email: 'barbara@example.com', secondFactor: false },
  ])
  const asked = async (authorization?: string) =>
    (await fetch(api, authorization ? { headers: { authorization } } : {})).status
  expect([await asked(), await asked('Bearer not.a.token')]).toEqual([401, 401])
  expect(events).toHaveBeenCalledWith('SIGNED_IN', 'barbara@example.com')

  // Where the keys cannot be had nobody is told that his token is bad.
  const [elsewhere, nobody] = [await findFreePort(), await findFreePort()]
  await serve('astray.js', elsewhere, `http://127.0.0.1:${nobody}`)
  await shell.start('node astray.js').says(/listening/)
  expect((await session.call(`http://127.0.0.1:${elsewhere}/`)).status).toBe(503)

  await session.signOut()
  expect((await session.call(api)).status).toBe(401)
  await session.auth.stopAutoRefresh()
  events.mockRestore()
  expect(guide.untaken()).toEqual([])
})
