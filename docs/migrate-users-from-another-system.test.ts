import { pbkdf2Sync, scryptSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings, authUrl } = inject('devServices')
const guide = openGuide('migrate-users-from-another-system.md')
let shell: Shell

/** bcrypt of "correct horse", cost 4. */
const BCRYPT = '$2b$04$mhCQ6XLU1ZQAB1TT39wFf.PdJ9t2MmAA.IlchzXPhRXNQ49JFnEVG'

const auth = { 'https://auth.example.com': authUrl }

beforeAll(async () => {
  const betterAuth = new URL(settings.AUTH_DATABASE_URL as string)
  betterAuth.searchParams.set('options', '-c search_path=better_auth')
  shell = await openShell({ ...settings, BETTER_AUTH_DATABASE_URL: String(betterAuth).replaceAll('+', '%20') })
})
afterAll(() => shell.close())

/** Imports a file that a recipe wrote, and signs its users in with the old password. */
async function importAndSignIn(file: string, users: Record<string, string>) {
  const { stdout } = await shell.run(`auth users import - < ${file}`)
  expect(stdout).toContain(`${Object.keys(users).length} imported, 0 already there, 0 refused`)
  for (const [email, password] of Object.entries(users)) {
    const body = JSON.stringify({ email, password })
    const answer = await fetch(`${authUrl}/token?grant_type=password`, { method: 'POST', body })
    expect([email, answer.status]).toEqual([email, 200])
  }
}

test('users of Keycloak keep ids and passwords', async () => {
  const salt = Buffer.from('sixteen-byte-slt')
  const value = pbkdf2Sync('correct horse', salt, 27_500, 64, 'sha256').toString('base64')
  const credential = {
    type: 'password',
    secretData: JSON.stringify({ value, salt: salt.toString('base64'), additionalParameters: {} }),
    credentialData: JSON.stringify({ hashIterations: 27_500, algorithm: 'pbkdf2-sha256', additionalParameters: {} }),
  }
  const user = { email: 'keycloak@example.com', emailVerified: true, createdTimestamp: 1_714_564_800_123 }
  const users = [{ id: 'b1c7d1a6-8f0e-4f0b-9a30-6f7a5cf8d001', ...user, credentials: [{ type: 'otp' }, credential] }]
  await shell.write('realm.json', JSON.stringify({ users }))
  await shell.run(guide.take('createdTimestamp'))
  await importAndSignIn('keycloak.jsonl', { 'keycloak@example.com': 'correct horse' })
})

test('users of Firebase keep passwords and accounts at Google', async () => {
  // The published example of Firebase's own scrypt tool.
  const user = {
    localId: 'ZmlyZWJhc2UtaWQ',
    email: 'firebase@example.com',
    emailVerified: true,
    passwordHash: 'lSrfV15cpx95_sZS2W9c9Kp6i_LVgQNDNC_qzrCnh1SAyZvqmZqAjTdn3aoItz-VHjoZilo78198JAdRuid5lQ==',
    salt: '42xEC-ixf3L2lw==',
    createdAt: '1714564800123',
    providerUserInfo: [{ providerId: 'google.com', rawId: '1042' }, { providerId: 'password' }],
  }
  await shell.write('firebase.json', JSON.stringify({ users: [user] }))
  const signer = 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=='
  const parameters = { MEMORY: '14', ROUNDS: '8', SALT_SEPARATOR: 'Bw==', SIGNER_KEY: signer }
  await shell.run(guide.take('firebase_id', parameters))
  await importAndSignIn('firebase.jsonl', { 'firebase@example.com': 'user1password' })
})

test('users of better-auth keep passwords', async () => {
  const salt = Buffer.from('sixteen-byte-slt').toString('hex')
  const key = scryptSync('correct horse', salt, 64, { N: 16_384, r: 16, p: 1, maxmem: 2 ** 26 }).toString('hex')
  await shell.run(`psql "$AUTH_DATABASE_URL" --quiet <<'SQL'
create schema better_auth;
create table better_auth.user (id text, name text, email text, "emailVerified" boolean, "createdAt" timestamp);
create table better_auth.account ("userId" text, "providerId" text, password text);
insert into better_auth.user values ('x1', 'Ada', 'better@example.com', true, '2024-05-01 12:00');
insert into better_auth.account values ('x1', 'github', null), ('x1', 'credential', '${salt}:${key}');
SQL`)
  await shell.run(guide.take('better_auth_id'))
  await importAndSignIn('better-auth.jsonl', { 'better@example.com': 'correct horse' })
  await shell.run('psql "$AUTH_DATABASE_URL" --quiet --command="drop schema better_auth cascade"')
})

test('users keep ids and passwords, broken lines are named, and HTTP imports users as well', async () => {
  await shell.write('users.jsonl', guide.file('users.jsonl', { BCRYPT }))
  const imports = guide.take('users import')
  const [dryRun = '', real = ''] = imports.trim().split('\n')
  const tried = await shell.run(dryRun)
  expect(tried.stdout).toMatch(/^3 lines in .*: 2 would be imported, 0 already there, 1 refused\nfix these lines/)
  expect(tried.stderr).toMatch(/^line 3: /m)
  expect((await shell.run(real)).stdout).toMatch(
    /: 2 imported, 0 already there, 1 refused\nthe other users are imported/,
  )

  const signIn = JSON.parse((await shell.run(guide.take('grant_type=password', auth))).stdout)
  expect(signIn.user).toMatchObject({
    id: '6f1c2d34-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
    user_metadata: { name: 'Grace' },
  })

  const byHttp = guide.take('/admin/users', {
    ...auth,
    BCRYPT,
    // configure-auth-for-production.test.ts runs the command, where it is explained.
    '$(auth tokens admin)': adminBy(settings.AUTH_JWT_SECRET).authorization.replace('Bearer ', ''),
  })
  expect(JSON.parse((await shell.run(byHttp)).stdout)).toMatchObject({ email: 'edsger@example.com' })
  const password = { email: 'edsger@example.com', password: 'correct horse' }
  const signedIn = await fetch(`${authUrl}/token?grant_type=password`, {
    method: 'POST',
    body: JSON.stringify(password),
  })
  expect(signedIn.status).toBe(200)

  await shell.run(guide.take('users export'))
  const exported = await readFile(join(shell.folder, 'export.jsonl'), 'utf8')
  const lines = exported
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const grace = lines.find(({ email }) => email === 'grace@example.com')
  // Our hash, no longer the imported one.
  expect(grace.password_hash).toMatch(/^\$argon2id\$/)
  expect(guide.untaken()).toEqual([])
})
