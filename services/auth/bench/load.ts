import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SignJWT } from 'jose'
import manifest from '../package.json' with { type: 'json' }
import { openConnection, type Send } from './http-client.ts'

export interface BenchUser {
  id: string
  email: string
  accessToken: string
  refreshToken: string
}

export const PASSWORD = 'correct horse battery'
export const SECRET = 'the-secret-of-the-benchmark-32-bytes'

/** Node's switches of `pnpm start`, read from package.json so that the benchmark measures the production setup. */
const startFlags = manifest.scripts.start.split(' ').filter((word) => word.startsWith('--'))
/** Settings of the C library, read there too. */
const [, GLIBC_TUNABLES = ''] = /GLIBC_TUNABLES=(\S+)/.exec(manifest.scripts.start) ?? []

export interface Program {
  cwd: string
  args: string[]
}

const SOURCES: Program = { cwd: fileURLToPath(new URL('..', import.meta.url)), args: ['src/main.ts'] }

/** Starts the service as `pnpm start` does, and measures the time until all its processes listen. */
export async function startService(databaseUrl: string, settings: Record<string, string> = {}, program = SOURCES) {
  const startedAt = performance.now()
  const child = spawn(
    process.execPath,
    [...(process.env.BENCH_NODE_FLAGS?.split(' ') ?? []), ...startFlags, ...program.args],
    {
      cwd: program.cwd,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: fileURLToPath(new URL('../../../node_modules/.cache/node', import.meta.url)),
        GLIBC_TUNABLES,
        AUTH_SITE_URL: 'http://localhost:3000',
        AUTH_API_EXTERNAL_URL: 'http://localhost',
        AUTH_API_HOST: '127.0.0.1',
        AUTH_PORT: '0',
        AUTH_DATABASE_URL: databaseUrl,
        AUTH_JWT_SECRET: SECRET,
        AUTH_MAILER_AUTOCONFIRM: 'true',
        AUTH_SMTP_HOST: '127.0.0.1',
        AUTH_SMTP_PORT: '1',
        AUTH_SMTP_ADMIN_EMAIL: 'bench@example.com',
        ...settings,
      },
    },
  )
  const processes = Number(settings.AUTH_WEB_CONCURRENCY ?? 1)
  // A run that fails leaves nothing behind.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  const base = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output = (output + chunk).slice(-20_000)
      const found = [...output.matchAll(/listening at (http:[^"]+)"/gi)]
      if (found.length >= processes) resolve(found[0]?.[1] as string)
    })
    child.once('exit', () => reject(new Error(`the service ended: ${output}`)))
  })
  return {
    base,
    pid: child.pid as number,
    readyMs: performance.now() - startedAt,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** Runs `concurrency` loops of sequential calls; returns the calls per second and the duration of each. */
export async function runFor(seconds: number, concurrency: number, call: (index: number) => Promise<void>) {
  const end = performance.now() + seconds * 1000
  const times: number[] = []
  const loop = async (index: number) => {
    for (let startedAt = performance.now(); startedAt < end; ) {
      await call(index)
      const now = performance.now()
      times.push(now - startedAt)
      startedAt = now
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: concurrency }, (_, index) => loop(index)))
  const rate = times.length / ((performance.now() - startedAt) / 1000)
  times.sort((a, b) => a - b)
  const percentile = (share: number) => times[Math.floor(times.length * share)] as number
  return { rate, calls: times.length, p50: percentile(0.5), p99: percentile(0.99) }
}

/** Runs `count` calls in `concurrency` loops. */
export async function runCalls(count: number, concurrency: number, call: (index: number) => Promise<void>) {
  let left = count
  const loop = async (index: number) => {
    while (left-- > 0) await call(index)
  }
  await Promise.all(Array.from({ length: concurrency }, (_, index) => loop(index)))
}

export async function createUsers(base: string, count: number, label = 'bench'): Promise<BenchUser[]> {
  const signUp = async (index: number) => {
    const email = `${label}-${index}@example.com`
    const session = await post(openConnection(base), '/signup', { email, password: PASSWORD })
    return { id: session.user.id, email, accessToken: session.access_token, refreshToken: session.refresh_token }
  }
  return Promise.all(Array.from({ length: count }, (_, index) => signUp(index)))
}

/**
 * Returns the call that one loop repeats, and so do `refreshes` and `userReads`. Each loop has its own connection and
 * takes its own part of the users in turn; a refresh stores the new tokens of its user.
 */
export function signIns(base: string, users: BenchUser[], loops = users.length) {
  const next = takeTurns(base, users, loops)
  return async (loop = 0) => {
    const { send, user } = next(loop)
    await post(send, '/token?grant_type=password', { email: user.email, password: PASSWORD })
  }
}

export function refreshes(base: string, users: BenchUser[], loops = users.length) {
  const next = takeTurns(base, users, loops)
  return async (loop = 0) => {
    const { send, user } = next(loop)
    const session = await post(send, '/token?grant_type=refresh_token', { refresh_token: user.refreshToken })
    user.refreshToken = session.refresh_token
    user.accessToken = session.access_token
  }
}

export function userReads(base: string, users: BenchUser[], loops = users.length) {
  const next = takeTurns(base, users, loops)
  return async (loop = 0) => {
    const { send, user } = next(loop)
    const headers = `authorization: Bearer ${user.accessToken}\r\n`
    const { status, body } = await send({ method: 'GET', path: '/user', headers })
    if (status !== 200) throw new Error(`GET /user: ${status} ${body}`)
  }
}

export const makeAdminToken = (): Promise<string> =>
  new SignJWT({ role: 'service_role' })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setAudience('authenticated')
    .setExpirationTime('12h')
    .sign(new TextEncoder().encode(SECRET))

/** Pages of 50 users, as an admin. */
export async function pageReads(base: string, loops: number) {
  const headers = `authorization: Bearer ${await makeAdminToken()}\r\n`
  const sends = Array.from({ length: loops }, () => openConnection(base))
  return async (loop = 0) => {
    const { status, body } = await (sends[loop] as Send)({ method: 'GET', path: '/admin/users', headers })
    if (status !== 200) throw new Error(`GET /admin/users: ${status} ${body}`)
  }
}

function takeTurns(base: string, users: BenchUser[], loops: number) {
  const own = Array.from({ length: loops }, (_, loop) => ({
    send: openConnection(base),
    users: users.filter((_user, index) => index % loops === loop),
    turn: 0,
  }))
  return (loop: number) => {
    const { send, users, turn } = own[loop] as (typeof own)[number]
    ;(own[loop] as (typeof own)[number]).turn++
    return { send, user: users[turn % users.length] as BenchUser }
  }
}

async function post(send: Send, path: string, json: object) {
  const { status, body } = await send({ method: 'POST', path, body: JSON.stringify(json) })
  if (status !== 200) throw new Error(`POST ${path}: ${status} ${body}`)
  return JSON.parse(body) as { access_token: string; refresh_token: string; user: { id: string } }
}
