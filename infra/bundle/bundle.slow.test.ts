// Parts that a bundle could lose: files beside modules, native code, modules started by path, names of sources in stack
// traces. All else is covered by the tests that start processes (`pnpm test:bundle`).
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../packages/common/src/dev/embedded-postgres.ts'
import { gif } from '../../services/media/test/gif-bytes.ts'
import { bundle } from './bundle.ts'

let folder: string
let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>
const processes: { child: ChildProcess; exit: Promise<number> }[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bundle-'))
  postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), database: 'bundle' })
}, 120_000)
afterAll(async () => {
  for (const { child, exit } of processes) {
    child.kill('SIGKILL')
    await exit
  }
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Starts a program of a bundle, without the packages of this workspace. */
function start(service: string, program: string, args: string[] = [], settings: Record<string, string> = {}) {
  const at = join(folder, service)
  const child = spawn(process.execPath, ['--enable-source-maps', join(at, 'dist', program), ...args], {
    cwd: at,
    env: { PATH: process.env.PATH, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(child, 'exit').then(([code]) => code as number)
  processes.push({ child, exit })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk
    })
  return { exit, output: () => output }
}

async function serve(service: string, settings: Record<string, string>): Promise<string> {
  const { output } = start(service, 'main.js', [], settings)
  await expect.poll(output, { timeout: 30_000 }).toMatch(/listening at http:/)
  return /listening at (http:[^"]+)"/.exec(output())?.[1] as string
}

const clip = gif(64, 64, [
  { delay: 50, width: 64, height: 64 },
  { delay: 50, width: 64, height: 64, color: 1 },
])
const SECRET = 'a-secret-of-the-bundle-test-32-bytes'
const authSettings = () => ({
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
  AUTH_API_HOST: '127.0.0.1',
  AUTH_PORT: '0',
  AUTH_DATABASE_URL: postgres.url,
  AUTH_JWT_SECRET: SECRET,
  AUTH_MAILER_AUTOCONFIRM: 'true',
  AUTH_HOSTED_PAGES_ENABLED: 'true',
  AUTH_CONSOLE_ENABLED: 'true',
  AUTH_SMTP_HOST: '127.0.0.1',
  AUTH_SMTP_PORT: '1',
  AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
})

test('auth runs from its bundle alone: passwords by both libraries, the page of its API, sources in stack traces', async () => {
  await bundle('auth', join(folder, 'auth'))
  const base = await serve('auth', authSettings())
  const post = async (path: string, body: object, headers = {}) =>
    (await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })).status
  const ada = { email: 'ada@example.com', password: 'correct horse battery' }
  expect(await post('/signup', ada)).toBe(200)
  expect(await post('/token?grant_type=password', ada)).toBe(200)

  const { output, exit } = start('auth', 'cli.js', ['tokens', 'admin'], authSettings())
  expect(await exit).toBe(0)
  const admin = { authorization: `Bearer ${/[\w-]+\.[\w-]+\.[\w-]+/.exec(output())?.[0]}` }
  const bob = { email: 'bob@example.com', password: 'abcdefgh' }
  const password_hash = '$2b$04$C47ojttqVavVVao01kv6fuRANrHflfpwMRuywvGJyMmTYz4w1mauS'
  expect(await post('/admin/users', { ...bob, password: undefined, email_confirm: true, password_hash }, admin)).toBe(
    200,
  )
  expect(await post('/token?grant_type=password', bob)).toBe(200)

  for (const path of ['/docs', '/docs/static/swagger-ui.css', '/docs/static/theme/docs.css', '/openapi.json']) {
    expect([path, (await fetch(base + path)).status]).toEqual([path, 200])
  }
  // The address of a module has the hashes of all that it imports.
  for (const path of ['/ui/sign-in', '/console', '/console/assets/main.js', '/console/assets/lit.js']) {
    expect([path, (await fetch(base + path)).status]).toEqual([path, 200])
  }

  const failed = start('auth', 'main.js', [], { ...authSettings(), AUTH_DATABASE_URL: `${postgres.url}-not-there` })
  expect(await failed.exit).toBeGreaterThan(0)
  expect(failed.output()).toMatch(/packages\/common\/src\/\w[\w/-]*\.ts:\d+/)
}, 120_000)

test('media runs from its bundle alone: a clip with a caption is made, and the programs of sandboxes start', async () => {
  await bundle('media', join(folder, 'media'))
  const base = await serve('media', {
    MEDIA_DATABASE_URL: postgres.url,
    MEDIA_DB_NAMESPACE: 'media',
    MEDIA_HOST: '127.0.0.1',
    MEDIA_PORT: '0',
    MEDIA_BASE_URL: 'http://media.example',
    MEDIA_BOOTSTRAP_TOKEN: SECRET,
    MEDIA_BLOBS_DIR: join(folder, 'blobs'),
    MEDIA_WORK_DIR: join(folder, 'work'),
  })
  const form = new FormData()
  form.set('file', new Blob([new Uint8Array(clip)]), 'clip.gif')
  form.set('caption', 'Hi')
  const made = await fetch(`${base}/media/upload`, { method: 'POST', headers: { Token: SECRET }, body: form })
  expect([made.status, await made.json()]).toMatchObject([201, {}])
  for (const path of ['', '/session', '/assets/kit.css', '/assets/lit.js']) {
    expect([path, (await fetch(base + path)).status]).toEqual([path, 200])
  }

  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n'
  const input = {
    sources: [{ kind: 'hls', text: playlist, url: 'https://a.example/a.m3u8' }],
    limits: { seconds: 30, pieces: 200 },
  }
  await writeFile(join(folder, 'media', 'manifests.json'), JSON.stringify(input))
  const reader = start('media', 'manifest-reader.js', ['manifests.json'])
  expect([await reader.exit, JSON.parse(reader.output())]).toEqual([0, { readings: [expect.anything()] }])
  const bridge = start('media', 'proxy-bridge.js', [join(folder, 'none'), '0', 'true'])
  expect(await bridge.exit).toBe(0)
}, 120_000)

test('a folder with other files is refused and keeps them', async () => {
  const sources = join(folder, 'sources')
  await mkdir(sources)
  await writeFile(join(sources, 'main.ts'), '')
  await expect(bundle('auth', sources)).rejects.toThrow('is no bundle')
  expect(await readdir(sources)).toEqual(['main.ts'])
})

test.each(['auth', 'media'])(
  'V8 keeps each module of %s in one byte a character, as none goes beyond Latin-1',
  async (service) => {
    const dist = join(folder, service, 'dist')
    for (const file of (await readdir(dist)).filter((name) => name.endsWith('.js'))) {
      expect([file, /[^\0-\xff]/.exec(await readFile(join(dist, file), 'utf8'))?.[0]]).toEqual([file, undefined])
    }
  },
)

test('a bundle has the licences of its packages, and beside itself packages with native code alone', async () => {
  const licenses = await readFile(join(folder, 'auth/LICENSES'), 'utf8')
  for (const name of ['fastify', 'kysely', 'argon2', '@opentelemetry/api'])
    expect(licenses).toMatch(new RegExp(`^${name} \\d`, 'm'))
  const packages = await readdir(join(folder, 'auth/node_modules'))
  expect(packages.sort()).toEqual(['@fastify', '@phc', 'argon2', 'bcrypt', 'lit-html', 'node-gyp-build'])
  const files = await readdir(join(folder, 'auth/node_modules'), { recursive: true })
  expect(files.filter((file) => /\.(d\.ts|cpp|h)$|win32|darwin|musl/.test(file))).toEqual([])
})
