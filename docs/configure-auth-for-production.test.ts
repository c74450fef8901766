import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { findFreePort } from '../packages/common/src/dev/dev-ports.ts'
import { findProgram } from '../packages/common/src/testing/run/needs.ts'
import { openGuide, readGuide } from './testing/guide.ts'
import { adminBy, decodeJwt } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { authUrl, settings, inboxUrl } = inject('devServices')
const guide = openGuide('configure-auth-for-production.md')
let shell: Shell

beforeAll(async () => {
  // Only the settings that the test itself needs; all others come from the guide.
  shell = await openShell({ AUTH_PORT: '0', AUTH_API_HOST: '127.0.0.1' })
})
afterAll(() => shell.close())

const NGINX = findProgram('nginx')

test('the settings file is complete, passes its checks, and starts the service without a warning', async () => {
  const written = await shell.run(
    guide.take('cat > auth.env', {
      'postgres://auth:password@db.internal/auth?sslmode=verify-full': settings.AUTH_DATABASE_URL as string,
      // Another secret would make the waiting mails of the running service unreadable.
      '$(openssl rand -base64 48)\nAUTH_ENCRYPTION_KEYS': `${settings.AUTH_JWT_SECRET}\nAUTH_ENCRYPTION_KEYS`,
      // The running service's key, made by the code of this command; rotate-keys.test.ts runs the command.
      '$(auth keys generate --alg ES256)': String(settings.AUTH_JWT_KEYS),
      'AUTH_SMTP_HOST=smtp.example.com': 'AUTH_SMTP_HOST=127.0.0.1',
      'AUTH_SMTP_PORT=587': `AUTH_SMTP_PORT=${settings.AUTH_SMTP_PORT}`,
      // The inbox requires no password and has no certificate.
      'AUTH_SMTP_USER=auth\n': '',
      "AUTH_SMTP_PASS='password'\n": '',
      'AUTH_SMTP_TLS=required': 'AUTH_SMTP_TLS=off',
    }),
  )
  expect(written).toMatchObject({ code: 0, stdout: '' })
  await shell.write('captcha.env', guide.file('captcha.env'))
  const check = await shell.run(`(. ./captcha.env; ${guide.take('config check')})`)
  // The only findings left concern settings that this test changed.
  expect(check).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^the configuration is complete\n(?:.*\n)+settings to review:\n {2}- AUTH_SMTP_TLS .*\n$/,
    ),
  })
  expect(check.stderr).not.toContain('"level":"warn"')

  const mail = await shell.run(guide.take('mail test'))
  expect(mail.stdout).toMatch(/^sent, Message-ID/)
  const received = await (await fetch(`${inboxUrl}/api/messages?to=you@example.com`)).json()
  expect(received).toMatchObject({ messages: [{ to: ['you@example.com'] }] })

  const accepted = await shell.run(guide.take('redirect check https://pull-7'))
  expect(accepted.stdout).toMatch(/^accepted: AUTH_URI_ALLOW_LIST holds .*preview/)

  const token = (await shell.run(guide.take('tokens admin'))).stdout.trim()
  const { role, exp, iat } = decodeJwt(token)
  expect([role, Number(exp) - Number(iat)]).toEqual(['service_role', 600])

  const service = shell.start(guide.take('auth start', { npx: '. ./auth.env; exec npx' }))
  const url = await service.says(/listening at (http:[^"]+)"/)
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  const admin = await fetch(`${url}/admin/users`, { headers: { authorization: `Bearer ${token}` } })
  expect(admin.status).toBe(200)
  const warnings = service
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":"warn"'))
  expect(warnings).toEqual([expect.stringMatching(/"settings":\["AUTH_SMTP_TLS [^"]*"\],"msg":"settings to review"/)])
})

test('behind the nginx of the guide a user with the largest metadata signs in by a link, and uses the token', async ({
  skip,
}) => {
  const server = guide.file('auth.conf')
  if (!NGINX) skip('this machine has no nginx')
  const port = await findFreePort()
  const http = server.replace('127.0.0.1:8443', `127.0.0.1:${port}`).replace('http://127.0.0.1:8081', authUrl)
  await shell.write(
    'nginx.conf',
    `daemon off; pid nginx.pid; error_log stderr; events {}\nhttp { access_log off; ${http} }`,
  )
  const nginx = shell.start(`${NGINX} -p "$PWD" -c nginx.conf`)
  const proxied = `http://127.0.0.1:${port}`
  const isUp = () => fetch(`${proxied}/health/live`).catch(() => ({ ok: false }))
  await expect.poll(isUp).toMatchObject({ ok: true })

  const email = 'large@example.com'
  const metadata = { text: 'x'.repeat(16_000) }
  const headers = { 'content-type': 'application/json', ...adminBy(settings.AUTH_JWT_SECRET) }
  const post = (path: string, body: object) =>
    fetch(`${proxied}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const user = { email, user_metadata: metadata, app_metadata: metadata }
  expect((await post('/admin/users', user)).status).toBe(200)
  // Without a target it is the account page, whose links have a button.
  const asked = { type: 'magiclink', email }
  const made = (await (
    await post('/admin/generate_link', { ...asked, redirect_to: 'http://localhost:3000' })
  ).json()) as {
    action_link: string
  }
  const link = await fetch(made.action_link.replace(/^https?:\/\/[^/]+/, proxied), { redirect: 'manual' })
  expect(link.status).toBe(200)
  const [, accessToken = ''] = /#access_token=([\w.-]+)/.exec(await link.text()) ?? []
  expect(accessToken.length).toBeGreaterThan(40_000)
  const me = await fetch(`${proxied}/user`, { headers: { authorization: `Bearer ${accessToken}` } })
  expect([me.status, await me.json()]).toEqual([200, expect.objectContaining({ email })])
  await nginx.stop()
})

test('the services log every warning that the tables list', async () => {
  const table = readGuide('configure-auth-for-production.md').split('## Warnings at start')[1] ?? ''
  const warnings = [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, warning]) => warning as string)
  expect(warnings.length).toBeGreaterThan(7)
  const folders = ['services/auth/src', 'services/media/src', 'packages/common/src']
  const sources = (await Promise.all(folders.map(readSources))).join('\n')
  // The guide writes … for the variable part of a message.
  const unknown = warnings.flatMap((warning) => warning.split('…')).filter((part) => !sources.includes(part.trim()))
  expect(unknown).toEqual([])
})

test('every block of the guide was run', () => {
  expect(guide.untaken()).toEqual([])
})

async function readSources(folder: string): Promise<string> {
  const root = join(import.meta.dirname, '..', folder)
  const files = (await readdir(root, { recursive: true })).filter((file) => /(?<!\.test)\.ts$/.test(file))
  return (await Promise.all(files.map((file) => readFile(join(root, file), 'utf8')))).join('\n')
}
