import { describe, expect } from 'vitest'
import { authHere } from './command-line.ts'
import { startTestService, type TestService, test } from './service.ts'

const password = 'correct horse'

/** The command line on the database of a service. */
const cliOf =
  ({ deps }: TestService) =>
  (line: string, input?: string | Buffer) =>
    authHere(
      line.split(' '),
      { AUTH_DATABASE_URL: deps.config.database.url, AUTH_PASSWORD_HASH_MEMORY_KIB: '64' },
      input,
    )

const signIn = (service: TestService, email: string, typed: string) =>
  service.post('/token?grant_type=password', { email, password: typed })

describe('users create', () => {
  test('with a password on standard input the user signs in, and the audit log names the creator', async ({
    service,
  }) => {
    const cli = cliOf(service)
    const made = await cli(
      'users create --email Made@example.com --email-confirm --role editor --password-stdin --json',
      `${password}\r\nwhat follows is not read`,
    )
    expect(made.code).toBe(0)
    const user = JSON.parse(made.stdout)
    expect(user).toMatchObject({ email: 'made@example.com', role: 'editor' })
    const session = await signIn(service, 'made@example.com', password)
    expect([session.status, session.body.user.id]).toEqual([200, user.id])
    const { body } = await service.get('/admin/audit', service.admin)
    const entry = body.find(({ payload }: { payload: { action: string } }) => payload.action === 'user_signedup')
    expect(entry.payload).toMatchObject({ actor_username: 'cli', traits: { user_id: user.id } })
  })

  test('without a password there is none, and a refusal is one line', async ({ service }) => {
    const cli = cliOf(service)
    const id = crypto.randomUUID()
    const line = `users create --email none@example.com --email-confirm --phone +4915112345678 --id ${id}`
    expect(await cli(line, password)).toMatchObject({ code: 0, stdout: `created ${id}\n` })
    expect((await signIn(service, 'none@example.com', password)).status).toBe(400)
    const again = await cli(line)
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('already been registered') })
    expect(again.stderr).not.toContain('    at ')
    expect(await cli('users create --email nonsense')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('invalid format'),
    })
  })

  test.for<[string, string | Buffer, string]>([
    ['nothing', '', 'no password'],
    ['an empty line', '\nsecond line', 'no password'],
    ['bytes that are no text', Buffer.from([0x61, 0xff, 0x0a]), 'not valid UTF-8'],
    ['NUL', 'correct\0horse', 'NUL'],
    ['a line without end', 'x'.repeat(1_000_000), 'too long'],
    ['more than a password may have', 'x'.repeat(1_025), 'longer than 1024 bytes'],
  ])('%s on standard input is refused as a password', async ([, input, words], { service }) => {
    const { code, stdout, stderr } = await cliOf(service)('users create --email in@example.com --password-stdin', input)
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(words) })
  })
})

describe('one user, by id, address or number', () => {
  test('banned and let in again', async ({ service }) => {
    const cli = cliOf(service)
    const { auth: header, userId } = await service.signedIn('banned@example.com', password)
    const { stdout } = await cli('users ban BANNED@example.com --for 24h --json')
    const inHours = (Date.parse(JSON.parse(stdout).banned_until) - Date.now()) / 3_600_000
    expect(inHours).toBeGreaterThan(23.9)
    expect((await service.get('/user', header)).body.error_code).toBe('user_banned')
    expect(await cli(`users unban ${userId}`)).toMatchObject({ code: 0, stdout: `${userId} is not banned\n` })
    expect((await service.get('/user', header)).status).toBe(200)
  })

  test('a new password takes effect at once, ends the sessions and follows the rules', async ({ service }) => {
    const cli = cliOf(service)
    const { refreshToken } = await service.signedIn('forgot@example.com', password)
    const line = 'users set-password forgot@example.com --password-stdin'
    expect(await cli(line, '123')).toMatchObject({ code: 1, stderr: expect.stringContaining('at least 6 characters') })
    const set = await cli(line, 'another horse\n')
    expect(set.code).toBe(0)
    expect(set.stdout + set.stderr).not.toContain('another horse')
    expect((await signIn(service, 'forgot@example.com', 'another horse')).status).toBe(200)
    expect((await signIn(service, 'forgot@example.com', password)).status).toBe(400)
    const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
    expect(refreshed.status).toBe(400)
  })

  test('a role goes into the next token', async ({ service }) => {
    const { refreshToken } = await service.signedIn('role@example.com', password)
    await cliOf(service)('users set-role role@example.com editor')
    const { body } = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
    expect(body.user.role).toBe('editor')
  })

  test('deleted and purged', async ({ service }) => {
    const cli = cliOf(service)
    const user = await service.post('/admin/users', { phone: '+4915187654321' }, service.admin)
    const { id } = user.body
    expect(await cli('users delete +4915187654321 --soft --yes --json')).toMatchObject({
      code: 0,
      stdout: `${JSON.stringify({ id, deletion: 'soft' })}\n`,
    })
    const kept = await service.get(`/admin/users/${id}`, service.admin)
    expect([kept.status, kept.body.phone]).toEqual([200, expect.not.stringContaining('4915187654321')])
    expect((await cli(`users delete ${id} --yes`)).code).toBe(0)
    expect((await service.get(`/admin/users/${id}`, service.admin)).status).toBe(404)
  })

  test.for([
    ['00000000-0000-4000-8000-000000000001', 'there is no such user'],
    ['nobody@example.com', 'there is no such user'],
    ['+4915100000000', 'there is no such user'],
    ['@', 'invalid format'],
    ['ada', 'Invalid phone number'],
  ])('%s is nobody', async ([name, words], { service }) => {
    expect(await cliOf(service)(`users unban ${name}`)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(words as string),
    })
  })
})

test('users list walks through all users, newest first, and through those of a filter', async () => {
  const service = await startTestService()
  const cli = cliOf(service)
  const { rows } = await service.deps.pool.query(`
    insert into users (id, aud, role, email, created_at, updated_at)
    select gen_random_uuid(), 'authenticated', E'edi\\ttor', n || '@list.example', now() + n * interval '1 ms', now()
    from generate_series(1, 1203) n returning email`)
  const all = await cli('users list --json')
  const emails = all.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).email)
  expect(emails).toEqual(rows.map(({ email }) => email).toReversed())
  const some = await cli('users list --filter 2@list --limit 3')
  const [headings, ...lines] = some.stdout.trimEnd().split('\n')
  expect(headings).toMatch(/^id +created +last sign-in +state +role +e-mail, phone$/)
  expect(lines.map((line) => line.split(/ {2,}/).slice(3))).toEqual([
    ['unconfirmed', 'edi?tor', '1202@list.example'],
    ['unconfirmed', 'edi?tor', '1192@list.example'],
    ['unconfirmed', 'edi?tor', '1182@list.example'],
  ])
  expect((await cli('users list --limit 1000 --json')).stdout.trimEnd().split('\n')).toHaveLength(1_000)
  expect(await cli(`users list --filter ${'x'.repeat(256)}`)).toMatchObject({ code: 1, stdout: '' })
  await service.close()
})
