import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openConnection, type Send } from './http-client.ts'

export interface BenchUser {
  id: string
  email: string
  accessToken: string
  refreshToken: string
}

const PASSWORD = 'correct horse battery'
export const SECRET = 'the-secret-of-the-benchmark-32-bytes'

/** The service as `pnpm start` runs it, and how long it took until it listened. */
export async function startService(databaseUrl: string, settings: Record<string, string> = {}) {
  const startedAt = performance.now()
  const child = spawn(
    process.execPath,
    [...(process.env.BENCH_NODE_FLAGS?.split(' ') ?? []), '--max-semi-space-size=4', 'src/main.ts'],
    {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: '../../node_modules/.cache/node',
        MALLOC_ARENA_MAX: '2',
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
  const base = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output = (output + chunk).slice(-10_000)
      const found = /listening at (http:[^"]+)"/.exec(output)?.[1]
      if (found) resolve(found)
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

/** Completed calls per second of `concurrency` loops, each running one call after the other. */
export async function runFor(seconds: number, concurrency: number, call: (index: number) => Promise<void>) {
  const end = performance.now() + seconds * 1000
  let done = 0
  const loop = async (index: number) => {
    while (performance.now() < end) {
      await call(index)
      done++
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: concurrency }, (_, index) => loop(index)))
  return done / ((performance.now() - startedAt) / 1000)
}

export async function createUsers(base: string, count: number): Promise<BenchUser[]> {
  const signUp = async (index: number) => {
    const email = `bench-${index}@example.com`
    const session = await post(openConnection(base), '/signup', { email, password: PASSWORD })
    return { id: session.user.id, email, accessToken: session.access_token, refreshToken: session.refresh_token }
  }
  return Promise.all(Array.from({ length: count }, (_, index) => signUp(index)))
}

export function signIns(base: string, users: BenchUser[]) {
  const clients = users.map((user) => ({ send: openConnection(base), body: { email: user.email, password: PASSWORD } }))
  return async (index = 0) => {
    const { send, body } = clients[index] as (typeof clients)[number]
    await post(send, '/token?grant_type=password', body)
  }
}

export function refreshes(base: string, users: BenchUser[]) {
  const clients = users.map((user) => ({ send: openConnection(base), token: user.refreshToken }))
  return async (index = 0) => {
    const client = clients[index] as (typeof clients)[number]
    const session = await post(client.send, '/token?grant_type=refresh_token', { refresh_token: client.token })
    client.token = session.refresh_token
  }
}

export function userReads(base: string, users: BenchUser[]) {
  const clients = users.map((user) => ({
    send: openConnection(base),
    headers: `authorization: Bearer ${user.accessToken}\r\n`,
  }))
  return async (index = 0) => {
    const { send, headers } = clients[index] as (typeof clients)[number]
    const { status, body } = await send({ method: 'GET', path: '/user', headers })
    if (status !== 200) throw new Error(`GET /user: ${status} ${body}`)
  }
}

async function post(send: Send, path: string, json: object) {
  const { status, body } = await send({ method: 'POST', path, body: JSON.stringify(json) })
  if (status !== 200) throw new Error(`POST ${path}: ${status} ${body}`)
  return JSON.parse(body) as { access_token: string; refresh_token: string; user: { id: string } }
}
