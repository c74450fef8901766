import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'
import { PORTS } from './dev-settings.ts'

const DEV_ALL = join(import.meta.dirname, 'dev-all.ts')
const DEV_CHILD = JSON.stringify(join(import.meta.dirname, 'dev-child.ts'))
const RUNNING = JSON.stringify(join(import.meta.dirname, 'running.ts'))

let root: string
let env: NodeJS.ProcessEnv
const started: ChildProcess[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'dev-all-test-'))
  const ports = await Promise.all([findFreePort(), findFreePort(), findFreePort(), findFreePort()])
  const [auth, media, web, smtp] = ports.map(String)
  env = { ...process.env, AUTH_PORT: auth, MEDIA_PORT: media, INBOX_WEB_PORT: web, INBOX_SMTP_PORT: smtp }
})

afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  await rm(root, { recursive: true, force: true })
})

test('one banner when all are ready, prefixed output, and a clean end on Ctrl-C', async () => {
  await writeService(
    'auth',
    `console.log('mail goes to', process.env.AUTH_SMTP_HOST + ':' + process.env.AUTH_SMTP_PORT)`,
  )
  await writeService('media')
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  expect(run.output()).toContain(`auth  | mail goes to 127.0.0.1:${env.INBOX_SMTP_PORT}`)
  expect(run.output()).toContain('auth is at http://auth.test')
  expect(run.output()).toContain('media is at http://media.test')
  expect((await fetch(`http://127.0.0.1:${env.INBOX_WEB_PORT}/`)).status).toBe(200)

  run.process.kill('SIGINT')
  run.process.kill('SIGINT') // pnpm passes on what the terminal has sent already
  expect(await run.exitCode).toBe(0)
  expect(run.output().match(/auth {2}\| asked to stop/g)).toHaveLength(1)
  expect(run.output().match(/media \| asked to stop/g)).toHaveLength(1)
  expect(await run.hasProcessesLeft()).toBe(false)
})

test('a deleted service is left out', async () => {
  await writeService('media')
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  expect(run.output()).not.toContain('inbox') // media sends no mail
  run.process.kill('SIGTERM')
  expect(await run.exitCode).toBe(0)
})

test.each([
  { when: 'before it is ready', wait: `await` },
  { when: 'while it serves', wait: `void` },
])('a service that fails $when stops the others and makes the exit code 1', async ({ wait }) => {
  const file = JSON.stringify(join(root, 'auth-is-up'))
  await writeService('auth', `setImmediate(() => process.getBuiltinModule('fs').writeFileSync(${file}, ''))`)
  await writeService(
    'media',
    `const failOnceAuthIsUp = async () => {
      while (!process.getBuiltinModule('fs').existsSync(${file})) await new Promise((next) => setTimeout(next, 20))
      process.exit(3)
    }
    ${wait} failOnceAuthIsUp()`,
  )
  const run = startDevAll()
  expect(await run.exitCode).toBe(1)
  expect(run.output()).toContain('media ended unexpectedly: exit code 3. Stopping the rest.')
  expect(run.output()).toContain('auth  | asked to stop')
  expect(await run.hasProcessesLeft()).toBe(false)
})

test('every port in use is named with its variable, and nothing is started', async () => {
  await writeService('auth')
  await writeService('media')
  const occupants = [env.MEDIA_PORT, env.INBOX_SMTP_PORT].map((port) =>
    createServer().listen(Number(port), '127.0.0.1'),
  )
  await Promise.all(occupants.map((occupant) => once(occupant, 'listening')))
  const run = startDevAll()
  expect(await run.exitCode).toBe(1)
  expect(run.output()).toContain(
    `Port ${env.MEDIA_PORT} is in use. Set MEDIA_PORT to another one.\n` +
      `Port ${env.INBOX_SMTP_PORT} is in use. Set INBOX_SMTP_PORT to another one.\n`,
  )
  const command = /^Free ones: (\S+) (\S+) npx -y pnpm@12 dev\n$/m.exec(run.output())
  expect(command?.slice(1)).toEqual([
    expect.stringMatching(/^MEDIA_PORT=\d+$/),
    expect.stringMatching(/^INBOX_SMTP_PORT=\d+$/),
  ])
  for (const setting of command?.slice(1) ?? []) expect(Object.values(env)).not.toContain(setting.split('=')[1])
  for (const occupant of occupants) occupant.close()
})

test('a mail server of the environment means no inbox', async () => {
  env.AUTH_SMTP_HOST = 'mail.example.com'
  await writeService('auth', `console.log('mail goes to', process.env.AUTH_SMTP_HOST)`)
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  expect(run.output()).toContain('mail goes to mail.example.com')
  await expect(fetch(`http://127.0.0.1:${env.INBOX_WEB_PORT}/`)).rejects.toThrow()
  run.process.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
})

test("a service's own .env sets the mail server and the port as the environment does", async () => {
  const { AUTH_PORT, ...others } = env
  env = others
  await writeService('auth', `console.log('mail goes to', process.env.AUTH_SMTP_HOST)`)
  await writeFile(join(root, 'services/auth/.env'), `AUTH_SMTP_HOST=mail.example\nAUTH_PORT=${AUTH_PORT}\n`)
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  expect(run.output()).toContain('mail goes to undefined')
  expect(run.output()).not.toContain('inbox')
  run.process.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  const taken = createServer().listen(Number(AUTH_PORT), '127.0.0.1')
  await once(taken, 'listening')
  const refused = startDevAll()
  expect(await refused.exitCode).toBe(1)
  expect(refused.output()).toContain(`${AUTH_PORT}`)
  taken.close()
})

test('services end when dev-all is killed by SIGKILL', async () => {
  await writeService('auth')
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  run.process.kill('SIGKILL')
  await expect.poll(() => run.hasProcessesLeft()).toBe(false)
})

test('dev --help names every port with its variable, and starts nothing', async () => {
  await writeService('auth')
  const run = startDevAll('--help')
  expect(await run.exitCode).toBe(0)
  for (const { variable, usual } of Object.values(PORTS))
    expect(run.output()).toMatch(new RegExp(`${variable} +${usual} `))
  expect(run.output()).toContain('DEV_DATA_DIR')
  expect(run.output()).not.toContain('auth is at')
})

test.each([
  { ports: 'the same ports', change: {} },
  { ports: 'other ports', change: { AUTH_PORT: '1', INBOX_WEB_PORT: '1', INBOX_SMTP_PORT: '1' } },
])('a second dev on the same data with $ports says that one runs, and what starts another', async ({ change }) => {
  await writeService('auth', `await claimDataDir(${JSON.stringify(join(root, '.data/auth'))}, 'auth', 'AUTH_PORT')`)
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  Object.assign(env, change)
  const second = startDevAll()
  expect(await second.exitCode).toBe(1)
  expect(second.output()).toMatch(
    /^dev already runs here .+\. Stop it with Ctrl-C in its terminal, or start a second one:\n {2}DEV_DATA_DIR='.+' AUTH_PORT=\d+ INBOX_WEB_PORT=\d+ INBOX_SMTP_PORT=\d+ npx -y pnpm@12 dev\n$/,
  )
  run.process.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
})

test('the inbox keeps its mails over a restart', async () => {
  await writeService('auth')
  const run = startDevAll()
  await run.says('Ctrl-C stops everything')
  await sendMail(Number(env.INBOX_SMTP_PORT))
  run.process.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  const next = startDevAll()
  await next.says('Ctrl-C stops everything')
  const answer = await fetch(`http://127.0.0.1:${env.INBOX_WEB_PORT}/api/messages`)
  expect(await answer.json()).toMatchObject({ messages: [{ to: ['ada@example.com'], subject: 'Hello' }] })
  next.process.kill('SIGINT')
  expect(await next.exitCode).toBe(0)
})

/** Each line is sent when the one before is answered. */
async function sendMail(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const lines = [
    'EHLO x',
    'MAIL FROM:<a@example.com>',
    'RCPT TO:<ada@example.com>',
    'DATA',
    'Subject: Hello\r\n\r\nx\r\n.',
  ]
  for await (const answer of createInterface({ input: socket })) {
    if (/^\d{3}-/.test(answer)) continue
    const line = lines.shift()
    if (line === undefined) break
    socket.write(`${line}\r\n`)
  }
  socket.destroy()
}

async function writeService(name: string, body = ''): Promise<void> {
  const folder = join(root, 'services', name, 'src')
  await mkdir(folder, { recursive: true })
  await writeFile(
    join(folder, 'dev.ts'),
    `import { announceReady, stopWithParent } from ${DEV_CHILD}
    import { claimDataDir } from ${RUNNING}
    ${body}
    const stop = () => { console.log('asked to stop'); setTimeout(() => process.exit(0), 50) }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
    stopWithParent(() => process.exit(0))
    announceReady('${name}', ['${name} is at http://${name}.test'])
    setInterval(() => {}, 1000)`,
  )
}

function startDevAll(...args: string[]) {
  const child = spawn(process.execPath, [DEV_ALL, root, ...args], { env })
  started.push(child)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  return {
    process: child,
    output: () => output,
    says: (text: string) => expect.poll(() => output).toContain(text),
    exitCode: once(child, 'close').then(([code]) => code as number | null),
    hasProcessesLeft: async () => (await listCommands()).includes(root) || (await listFolders()).includes(root),
  }
}

const listCommands = () => capture('ps', ['-eo', 'args'])

/** Working directories of all processes: a service is started by a relative path. */
const listFolders = () => capture('sh', ['-c', 'readlink /proc/[0-9]*/cwd; true'])

async function capture(command: string, args: string[]): Promise<string> {
  const child = spawn(command, args)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return output
}
