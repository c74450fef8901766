import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { adminBy, isSignedByOneOf, keyIdOf, type PublishedKey } from './testing/jwt.ts'
import { openShell, type Shell, type Started } from './testing/shell.ts'

const { settings } = inject('devServices')
const guide = openGuide('rotate-keys.md')
let shell: Shell
let running: (Started & { url: string }) | undefined

beforeAll(async () => {
  shell = await openShell(settings)
})
afterAll(() => shell.close())

const NO_JQ = 'the guide uses jq, which this machine has not: apt-get install jq'

const hasJq = (() => {
  try {
    return execFileSync('jq', ['--version']).length > 0
  } catch {
    return false
  }
})()

/** Restarts the service with the variables that the guide has exported so far. */
async function restart(): Promise<string> {
  await running?.stop()
  const started = shell.start('exec npx -y pnpm@12 -C services/auth start')
  running = { ...started, url: await started.says(/listening at (http:[^"]+)"/) }
  return running.url
}

async function tokens(url: string, grant: string, body: object) {
  const answer = await fetch(`${url}/token?grant_type=${grant}`, { method: 'POST', body: JSON.stringify(body) })
  const { access_token: access, refresh_token: refresh } = (await answer.json()) as Record<string, string>
  return { status: answer.status, access: String(access), refresh: String(refresh) }
}

const userStatus = async (url: string, access: string) =>
  (await fetch(`${url}/user`, { headers: { authorization: `Bearer ${access}` } })).status

test('a session survives a rotation, and its tokens verify until the old key is removed', async ({ skip }) => {
  skip(!hasJq, NO_JQ)
  const { authUrl } = inject('devServices')
  const password = { email: 'dorothy@example.com', password: 'correct horse' }
  await fetch(`${authUrl}/admin/users`, {
    method: 'POST',
    headers: { ...adminBy(settings.AUTH_JWT_SECRET), 'content-type': 'application/json' },
    body: JSON.stringify({ ...password, email_confirm: true }),
  })
  // The session begins before anything has changed.
  const first = await tokens(authUrl, 'password', password)
  const oldKey = keyIdOf(first.access)

  expect(await shell.run(guide.take('NEW='))).toMatchObject({ code: 0 })
  let url = await restart()
  const published = await shell.run(guide.take('jwks.json', { 'https://auth.example.com': url }))
  const cached = JSON.parse(published.stdout) as { keys: PublishedKey[] }
  const [, newKey] = cached.keys.map(({ kid }) => kid)
  expect(cached.keys.map(({ kid }) => kid)).toEqual([oldKey, newKey])
  const second = await tokens(url, 'refresh_token', { refresh_token: first.refresh })
  expect([second.status, keyIdOf(second.access)]).toEqual([200, oldKey])

  const promoted = await shell.run(guide.take('$now.keys[:-1][]'))
  expect(promoted).toMatchObject({ code: 0 })
  url = await restart()
  const third = await tokens(url, 'refresh_token', { refresh_token: second.refresh })
  expect([third.status, keyIdOf(third.access)]).toEqual([200, newKey])
  // Tokens of both keys, here and at a server that read the keys in step 1.
  for (const { access } of [first, second, third]) {
    expect(await userStatus(url, access)).toBe(200)
    expect(isSignedByOneOf(cached.keys, access)).toBe(true)
  }

  expect(await shell.run(guide.take('$now.keys[-1:]}'))).toMatchObject({ code: 0 })
  url = await restart()
  expect(await userStatus(url, second.access)).toBe(403)
  expect(await userStatus(url, third.access)).toBe(200)
  expect((await tokens(url, 'refresh_token', { refresh_token: third.refresh })).status).toBe(200)
})

test('a new secret keeps data of the old one readable if the old one stays configured by name', async ({ skip }) => {
  skip(!hasJq, NO_JQ)
  const ran = await shell.run(`${guide.take('AUTH_ENCRYPTION_KEY=')}\necho "$AUTH_ENCRYPTION_KEY|$AUTH_JWT_SECRET"`)
  const [encryption, secret] = ran.stdout.trim().split('|')
  expect(encryption).toBe(settings.AUTH_JWT_SECRET)
  expect(String(secret).length).toBeGreaterThan(60)
  expect(guide.untaken()).toEqual([])
})
