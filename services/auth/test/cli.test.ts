import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { describe, expect } from 'vitest'
import { parseEncryptionKeys } from '../src/core/keys/encryption-keys.ts'
import { auth, authHere } from './command-line.ts'
import { createDatabase, startTestService, test } from './service.ts'

const COMMANDS = [
  'serve',
  'worker',
  'migrate',
  'migrate status',
  'config check',
  'config table',
  'version',
  'keys generate',
  'keys encryption status',
  'keys encryption rotate',
  'admin create',
  'tokens admin',
  'users create',
  'users list',
  'users show',
  'users ban',
  'users unban',
  'users set-password',
  'users set-role',
  'users confirm',
  'users set-email',
  'users sign-out',
  'users remove-factor',
  'users delete',
  'users import',
  'users export',
  'audit export',
  'messages list',
  'messages retry',
  'webhooks replay',
  'mail preview',
  'mail test',
  'hook test',
  'redirect check',
]

test('every command is in the help and has help of its own, which needs no settings', async () => {
  const help = await authHere(['--help'])
  const listed = [...help.stdout.matchAll(/^ {2}([a-z]+( [a-z-]+){0,2}) /gm)].map(([, name]) => name)
  expect({ code: help.code, listed }).toEqual({ code: 0, listed: COMMANDS })
  for (const name of COMMANDS) {
    const { code, stdout } = await authHere([...name.split(' '), '--help'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`auth ${name}`) })
    expect(stdout).toContain('--json')
  }
})

test('a slip in the name of any command finds it, whatever operands follow', async () => {
  for (const name of COMMANDS) {
    const [group = '', ...words] = name.split(' ')
    const { stderr } = await authHere([group.slice(0, -1), ...words, crypto.randomUUID(), 'ada@example.com'])
    expect(stderr).toContain(`Did you mean "${name}"?`)
  }
})

describe('wrong usage ends with 64 and a hint, and prints no result', () => {
  test.for([
    ['migrat', 'Did you mean "migrate"?'],
    ['users improt', 'Did you mean "users import"?'],
    ['webhooks list', 'unknown command: webhooks list\nauth --help lists'],
    ['users', 'users import FILE'],
    ['version --loud', 'auth version --help'],
    ['version now', 'needs no operands'],
    ['users import', 'needs FILE'],
    ['users import a b', 'needs FILE'],
    ['admin create', 'needs --email'],
    ['users create', 'needs --email or --phone'],
    ['users create --email a@b.example --password secret', 'auth users create --help'],
    ['users list --limit 0', '--limit must be'],
    ['users ban ada@example.com', '--for must be'],
    ['users ban ada@example.com --for none', '--for must be'],
    ['users ban ada@example.com --for -1h', 'auth users ban --help'],
    ['users ban ada@example.com --for=-1h', '--for must be'],
    ['users ban ada@example.com --for 24', '--for must be a duration such as 7d or 1h30m (units w, d, h, m, s, ms)'],
    ['users ban ada@example.com --for 99999999w', 'ms), more than zero and at most 2562047h, which is 292 years'],
    ['users delete ada@example.com', 'needs --yes'],
    ['users set-password ada@example.com', 'needs --password-stdin'],
    ['users set-role ada@example.com', 'needs USER ROLE'],
    ['mail preview invite --locale fr', '--locale must be one of AUTH_MAILER_LOCALES, which are en, de'],
    ['mail preview invite --html --text', 'either --html or --text'],
    ['mail test nobody', 'ADDRESS must be an e-mail address'],
    ['mail test a@b.example,c@d.example', 'ADDRESS must be an e-mail address'],
    ['redirect check', 'needs URL'],
    ['keys generate --alg none', '--alg must be one of'],
    ['keys generate --alg', 'auth keys generate --help'],
    ['keys generate --encryption --alg ES256', '--alg is for keys that sign'],
    ['keys generate --encryption --kid 2026.b', '--kid must be 1 to 16 of a-z, 0-9 and the hyphen'],
    ['tokens admin --expires never', '--expires must be none, seconds, or a duration such as 7d or 1h30m (units w, d,'],
    ['tokens admin --expires 0', 'ms), from a second to 100 years'],
    ['tokens admin --expires 99999999999999h', '--expires must be at most 876000h, which is 100 years'],
  ])('%s', async ([line, hint]) => {
    const answer = await authHere((line as string).split(' '))
    expect(answer).toEqual({ code: 64, stdout: '', stderr: expect.stringContaining(hint as string) })
  })
})

test('version is the version and nothing else', async () => {
  expect((await authHere(['version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})

describe('keys generate', () => {
  test.for(['RS256', 'ES256', 'EdDSA'])('%s: the result is a value for AUTH_JWT_KEYS that signs', async (alg) => {
    const { code, stdout, stderr } = await authHere(['keys', 'generate', '--alg', alg, '--kid', 'first'])
    expect(code).toBe(0)
    expect(stderr).toContain('To replace keys')
    expect(JSON.parse(stdout).keys).toMatchObject([{ kid: 'first', alg, key_ops: ['sign', 'verify'] }])
    const service = await startTestService({ AUTH_JWT_KEYS: stdout, AUTH_MAILER_AUTOCONFIRM: 'true' })
    const { body } = await service.post('/signup', { email: 'ada@example.com', password: 'correct horse' })
    expect(decodeProtectedHeader(body.access_token)).toMatchObject({ alg, kid: 'first' })
    await service.app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = service.app.server.address() as { port: number }
    const keys = createRemoteJWKSet(new URL(`http://127.0.0.1:${port}/.well-known/jwks.json`))
    expect((await jwtVerify(body.access_token, keys)).payload.sub).toBe(body.user.id)
    await service.close()
  })

  test('RS256 and an id of its own without options', async () => {
    const made = [await authHere(['keys', 'generate']), await authHere(['keys', 'generate', '--json'])]
    const [first, second] = made.map(({ stdout }) => JSON.parse(stdout).keys[0])
    expect([first.alg, first.kty, second.alg]).toEqual(['RS256', 'RSA', 'RS256'])
    expect(first.kid).not.toBe(second.kid)
    expect(Buffer.from(first.n, 'base64url')).toHaveLength(3072 / 8)
    expect(first.kid).toMatch(/^[\w-]{43}$/)
  })
})

test('keys generate --encryption: the result is an entry of AUTH_ENCRYPTION_KEYS, with another id each time', async () => {
  const made = [
    await authHere(['keys', 'generate', '--encryption']),
    await authHere(['keys', 'generate', '--encryption', '--kid', '2026b']),
  ]
  const entries = made.map(({ stdout }) => stdout.trim())
  expect(entries).toEqual([
    expect.stringMatching(/^\d{4}-\d\d-[a-z0-9]{4}:[\w-]{43}$/),
    expect.stringMatching(/^2026b:[\w-]{43}$/),
  ])
  expect(made[0]?.stderr).toContain('To replace the key')
  const parsed = parseEncryptionKeys(entries.join())
  expect(parsed).toHaveLength(2)
  const { stdout } = await authHere(['keys', 'generate', '--encryption', '--json'])
  expect(JSON.parse(stdout)).toEqual({ id: expect.any(String), key: expect.stringMatching(/^[\w-]{43}$/) })
})

describe('tokens admin', () => {
  test('a token of the service, for ten minutes and of no user', async ({ service }) => {
    const { code, stdout, stderr } = await authHere(['tokens', 'admin'])
    expect(code).toBe(0)
    const token = stdout.trim()
    const claims = decodeJwt(token)
    expect(claims).toEqual({
      iss: 'https://auth.example',
      aud: 'authenticated',
      role: 'service_role',
      iat: expect.any(Number),
      exp: (claims.iat as number) + 600,
    })
    expect(stderr).toContain(new Date((claims.exp as number) * 1000).toISOString())
    expect(await service.deps.keys.verify(token, new Date())).toEqual(claims)
  })

  test('for no role but those of admins', async () => {
    const { code, stderr } = await authHere(['tokens', 'admin', '--role', 'authenticated'])
    expect([code, stderr]).toEqual([64, expect.stringContaining('--role must be one of AUTH_JWT_ADMIN_ROLES')])
  })

  test('with another role and without an end when that is asked for', async () => {
    const { stdout, stderr } = await authHere([
      'tokens',
      'admin',
      '--role',
      'supabase_admin',
      '--expires',
      'none',
      '--json',
    ])
    const { token, ...rest } = JSON.parse(stdout)
    expect(rest).toEqual({ role: 'supabase_admin', expires_at: null })
    expect(decodeJwt(token)).toMatchObject({ role: 'supabase_admin' })
    expect(decodeJwt(token)).not.toHaveProperty('exp')
    expect(stderr).toContain('never expires')
  })
})

test('config check names a pattern that can never match, and one that is too long', async () => {
  const env = {
    AUTH_URI_ALLOW_LIST: 'https://*-x.example.com/**,app.example.com/**,com.my_app://**',
    AUTH_LOG_LEVEL: 'warn',
  }
  // A process of its own: the log goes around what a test catches.
  const { code, stdout, stderr } = await auth(['config', 'check', '--json'], env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout).warnings).toEqual([
    expect.stringContaining('AUTH_UNKNOWN is not a known variable'),
    'AUTH_URI_ALLOW_LIST: pattern 2 can never match: not an absolute URL',
    expect.stringContaining('AUTH_URI_ALLOW_LIST: pattern 3 can never match: its scheme holds an underscore'),
  ])
  const long = { AUTH_URI_ALLOW_LIST: `https://fine.example/**,https://x.example/${'a**'.repeat(10_001)}` }
  const refused = await authHere(['config', 'check'], long)
  expect(refused.code).not.toBe(0)
  expect(refused.stdout + refused.stderr).toMatch(/AUTH_URI_ALLOW_LIST has a pattern of more than 20000 .*: pattern 2/)
})

describe('redirect check', () => {
  const check = async (url: string) => {
    const settings = { AUTH_URI_ALLOW_LIST: 'https://*.apps.example/**,myapp://callback' }
    const { code, stdout } = await authHere(['redirect', 'check', url, '--json'], settings)
    return { code, ...JSON.parse(stdout) }
  }
  test.for([
    ['https://site.example/welcome', 'host of AUTH_SITE_URL'],
    ['https://one.apps.example/x', 'https://*.apps.example/**'],
    ['myapp://callback', 'myapp://callback'],
  ])('accepts %s and names the rule', async ([url, rule]) => {
    expect(await check(url as string)).toEqual({
      code: 0,
      accepted: true,
      rule: expect.stringContaining(rule as string),
    })
  })
  test.for([
    ['https://evil.example/', 'neither'],
    ['/welcome', 'not an absolute URL'],
    ['com.my_app://callback', 'its scheme holds an underscore'],
    ['https://user:secret@site.example/', 'user name or password'],
    ['javascript:alert(1)', 'never a target'],
    ['https://site.example\\@evil.example/', 'backslashes'],
    [`https://site.example/${'x'.repeat(3_000)}`, 'longer'],
  ])('refuses %s and says why', async ([url, reason]) => {
    expect(await check(url as string)).toEqual({
      code: 1,
      accepted: false,
      reason: expect.stringContaining(reason as string),
    })
  })
})

describe('users import and export', () => {
  const line = async (email: string) =>
    JSON.stringify({ email, email_verified: true, password_hash: await bcrypt.hash('the old password', 4) })

  test('refused lines go to standard error, the summary to standard output, and the exit code is not 0', async () => {
    const database = await createDatabase()
    const settings = { AUTH_DATABASE_URL: database.url }
    const lines = `${await line('one@example.com')}\nnonsense\n${await line('two@example.com')}\n`
    const file = join(tmpdir(), `users-${crypto.randomUUID()}.jsonl`)
    await writeFile(file, lines)
    const dry = await authHere(['users', 'import', file, '--dry-run'], settings)
    expect(dry).toMatchObject({ code: 1, stdout: expect.stringContaining('2 would be imported') })
    const piped = await authHere(['users', 'import', '-', '--json'], settings, lines)
    expect(piped).toMatchObject({ code: 1, stderr: expect.stringContaining('line 2: is not valid JSON') })
    expect(JSON.parse(piped.stdout)).toMatchObject({
      lines: 3,
      imported: 2,
      already_there: 0,
      refused: 1,
      dry_run: false,
    })
    const again = await authHere(['users', 'import', '-'], settings, lines.replace('nonsense', ''))
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('2 already there, 0 refused') })
    for (const { stdout, stderr } of [dry, piped, again]) expect(stdout + stderr).not.toContain('@example.com')
    expect(await authHere(['users', 'import', '/does/not/exist'], settings)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('cannot read'),
    })
    await database.drop()
  })

  test('an export is imported elsewhere, and users sign in there', async ({ service }) => {
    const { url } = service.deps.config.database
    const { userId } = await service.signedIn('exported@example.com', 'the first password')
    const without = await authHere(['users', 'export'], { AUTH_DATABASE_URL: url })
    expect(without.stdout).toContain('exported@example.com')
    expect(without.stdout).not.toContain('argon2')
    const whole = await authHere(['users', 'export', '--with-hashes'], { AUTH_DATABASE_URL: url })
    const elsewhere = await startTestService()
    const settings = { AUTH_DATABASE_URL: elsewhere.deps.config.database.url }
    expect(await authHere(['users', 'import', '-'], settings, whole.stdout)).toMatchObject({ code: 0 })
    const credentials = { email: 'exported@example.com', password: 'the first password' }
    const { status, body } = await elsewhere.post('/token?grant_type=password', credentials)
    expect([status, body.user.id]).toEqual([200, userId])
    const there = await service.post('/token?grant_type=password', credentials)
    const comparable = ({ created_at, email_confirmed_at, user_metadata, app_metadata, role }: typeof body) => ({
      created_at,
      email_confirmed_at,
      user_metadata,
      app_metadata,
      role,
    })
    expect(comparable(body.user)).toEqual(comparable(there.body.user))
    await elsewhere.close()
  })

  test('tables with a prefix are imported into as well', async () => {
    const database = await createDatabase()
    const settings = { AUTH_DATABASE_URL: database.url, AUTH_DB_NAMESPACE: 'acme' }
    expect(await authHere(['migrate'], settings)).toMatchObject({ code: 0, stdout: expect.stringContaining('applied') })
    const lines = await line('prefixed@example.com')
    expect(await authHere(['users', 'import', '-'], settings, lines)).toMatchObject({ code: 0 })
    const exported = await authHere(['users', 'export'], settings)
    expect(JSON.parse(exported.stdout)).toMatchObject({ email: 'prefixed@example.com' })
    const other = await authHere(['users', 'export'], { AUTH_DATABASE_URL: database.url })
    expect(other).toMatchObject({ code: 0, stdout: '' })
    await database.drop()
  })
})

test('migrate says what it applied, in words and as JSON', async () => {
  const database = await createDatabase()
  const settings = { AUTH_DATABASE_URL: database.url, AUTH_DB_NAMESPACE: 'fresh' }
  const pending = await authHere(['migrate', '--dry-run', '--json'], settings)
  expect(JSON.parse(pending.stdout)[0]).toMatchObject({
    name: '0001-users',
    sql: expect.stringContaining('fresh_users'),
  })
  const before = await authHere(['migrate', 'status', '--json'], settings)
  expect(JSON.parse(before.stdout)[0]).toEqual({ name: '0001-users', applied_at: null, alone: false })
  const applied = await authHere(['migrate', '--json'], settings)
  expect(JSON.parse(applied.stdout).applied).toContain('0001-users')
  expect(JSON.parse((await authHere(['migrate', '--json'], settings)).stdout)).toEqual({ applied: [] })
  const after = await authHere(['migrate', 'status', '--json'], settings)
  expect(JSON.parse(after.stdout)[0].applied_at).toMatch(/^\d{4}-/)
  expect((await authHere(['migrate', 'status'], settings)).stdout).toMatch(/^\d{4}-.* 0001-users$/m)
  expect((await authHere(['migrate', '--dry-run'], settings)).stdout).toBe('')
  await database.drop()
})
