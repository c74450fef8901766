import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { SECRET } from './service.ts'

const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const SETTINGS = {
  // As `pnpm start` has it: half of each run would be spent on compiling.
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../../node_modules/.cache/node', import.meta.url)),
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
  AUTH_DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none',
  AUTH_JWT_SECRET: SECRET,
  AUTH_SMTP_HOST: '127.0.0.1',
  AUTH_SMTP_PORT: '1',
  AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
}

/** The real command line in a process of its own. */
export async function auth(args: string[], settings: Record<string, string> = {}, input: string | Buffer = '') {
  // Every run warns of an unknown setting: the warning must not get among the result.
  const env = { PATH: process.env.PATH, AUTH_UNKNOWN: 'x', ...SETTINGS, ...settings }
  const child = spawn(process.execPath, [cli, ...args], { cwd: tmpdir(), env })
  // A command that needs no input is gone before it was written.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, stdout, stderr }
}
