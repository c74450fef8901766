import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'

export interface BenchUser {
  id: string
  email: string
  accessToken: string
  refreshToken: string
}

const PASSWORD = 'correct horse battery'

/** The service as `pnpm start` runs it, and how long it took until it listened. */
export async function startService(databaseUrl: string) {
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
        AUTH_SITE_URL: 'http://localhost:3000',
        AUTH_API_EXTERNAL_URL: 'http://localhost',
        AUTH_API_HOST: '127.0.0.1',
        AUTH_PORT: '0',
        AUTH_DATABASE_URL: databaseUrl,
        AUTH_JWT_SECRET: 'the-secret-of-the-benchmark-32-bytes',
        AUTH_MAILER_AUTOCONFIRM: 'true',
        AUTH_SMTP_HOST: '127.0.0.1',
        AUTH_SMTP_PORT: '1',
        AUTH_SMTP_ADMIN_EMAIL: 'bench@example.com',
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
  const pool = new Pool(base, { connections: 4 })
  const signUp = async (index: number) => {
    const email = `bench-${index}@example.com`
    const session = await send(pool, '/signup', { email, password: PASSWORD })
    return { id: session.user.id, email, accessToken: session.access_token, refreshToken: session.refresh_token }
  }
  const users = await Promise.all(Array.from({ length: count }, (_, index) => signUp(index)))
  await pool.close()
  return users
}

export function signIns(base: string, users: BenchUser[]) {
  const pool = new Pool(base)
  return async (index = 0) => {
    await send(pool, '/token?grant_type=password', { email: users[index]?.email, password: PASSWORD })
  }
}

export function refreshes(base: string, users: BenchUser[]) {
  const pool = new Pool(base)
  const tokens = users.map((user) => user.refreshToken)
  return async (index = 0) => {
    const session = await send(pool, '/token?grant_type=refresh_token', { refresh_token: tokens[index] })
    tokens[index] = session.refresh_token
  }
}

export function userReads(base: string, users: BenchUser[]) {
  const pool = new Pool(base)
  return async (index = 0) => {
    const headers = { authorization: `Bearer ${users[index]?.accessToken}` }
    const { statusCode, body } = await pool.request({ path: '/user', method: 'GET', headers })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`GET /user: ${statusCode} ${text}`)
  }
}

async function send(pool: Pool, path: string, body: object) {
  const { statusCode, body: answer } = await pool.request({ path, method: 'POST', body: JSON.stringify(body) })
  const json = (await answer.json()) as {
    access_token: string
    refresh_token: string
    user: { id: string }
  }
  if (statusCode !== 200) throw new Error(`POST ${path}: ${statusCode} ${JSON.stringify(json)}`)
  return json
}
