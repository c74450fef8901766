import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { totpCode } from '../services/auth/test/second-factors.ts'
import { openGuide } from './testing/guide.ts'
import { adminBy, isSignedByOneOf, keyIdOf, type PublishedKey } from './testing/jwt.ts'
import { openShell, type Shell, type Started } from './testing/shell.ts'

const { settings } = inject('devServices')
const guide = openGuide('rotate-keys.md')
const newSecret = guide.take('AUTH_ENCRYPTION_KEY=')
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
async function restart(at = shell): Promise<string> {
  await running?.stop()
  const started = at.start('exec npx -y pnpm@12 -C services/auth start')
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

test('an app that was enrolled under the key without id proves itself while a new one takes over, and afterwards', async () => {
  const auth = (body: { access_token: string }) => ({ authorization: `Bearer ${body.access_token}` })
  const post = async (url: string, body: object, headers: Record<string, string>) => {
    const json = { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })
    return (await answer.json()) as Record<string, string> & { access_token: string; totp: { secret: string } }
  }
  const credentials = { email: 'grace@example.com', password: 'correct horse' }
  // Tables of its own: the running service has only the key without id.
  const own = await openShell({ ...settings, AUTH_DB_NAMESPACE: 'rotation', AUTH_MIGRATE_ON_START: 'true' })
  onTestFinished(() => own.close())
  let url = await restart(own)
  await post(`${url}/admin/users`, { ...credentials, email_confirm: true }, adminBy(settings.AUTH_JWT_SECRET))
  const session = await post(`${url}/token?grant_type=password`, credentials, {})
  const { id, totp } = await post(`${url}/factors`, { factor_type: 'totp' }, auth(session))
  // Each code is used once. One of the next step is accepted, too, so two proofs need no wait.
  let step = 0
  const prove = async () => {
    step = Math.max(step + 1, Math.floor(Date.now() / 30_000))
    const { id: challenge_id } = await post(`${url}/factors/${id}/challenge`, {}, auth(session))
    const code = totpCode(totp.secret, new Date(step * 30_000))
    return (await post(`${url}/factors/${id}/verify`, { challenge_id, code }, auth(session))).access_token
  }

  expect(await own.run(guide.take('keys generate --encryption'))).toMatchObject({ code: 0 })
  expect(await own.run(guide.take('##*,'))).toMatchObject({ code: 0 })
  // The secret has encrypted the row, and is replaced before the row moves.
  expect(await own.run(newSecret)).toMatchObject({ code: 0 })
  url = await restart(own)
  expect(await prove()).toBeTruthy()
  const rotated = await own.run(guide.take('encryption rotate'))
  expect([rotated.code, rotated.stderr.includes('left')]).toEqual([0, false])
  expect(rotated.stdout).toMatch(/^factors: \d+ rows encrypted anew$/m)
  expect(rotated.stdout).toMatch(/^without id +factors +0$/m)
  expect(await own.run(guide.take('%%,*}'))).toMatchObject({ code: 0 })
  url = await restart(own)
  expect(await prove()).toBeTruthy()
  expect(await (await fetch(`${url}/health/ready`)).json()).toEqual({ status: 'ok' })
})

test('a new secret leaves the old one configured by name, unless there is a key without id', async ({ skip }) => {
  skip(!hasJq, NO_JQ)
  for (const [before, kept] of [
    ['unset AUTH_ENCRYPTION_KEY', settings.AUTH_JWT_SECRET],
    ['AUTH_ENCRYPTION_KEY=own', 'own'],
  ]) {
    const ran = await shell.run(`${before}\n${newSecret}\necho "$AUTH_ENCRYPTION_KEY|$AUTH_JWT_SECRET"`)
    const [encryption, secret] = ran.stdout.trim().split('|')
    expect(encryption).toBe(kept)
    expect(String(secret).length).toBeGreaterThan(60)
  }
  expect(guide.untaken()).toEqual([])
})
