import { describe, expect } from 'vitest'
import { authHere } from './command-line.ts'
import { importLines } from './import-lines.ts'
import { withTotp } from './second-factors.ts'
import { startTestService, type TestService, test } from './service.ts'
import { PASSKEYS, signIn as passkeySignIn, withPasskey } from './webauthn/passkeys.ts'

const password = 'correct horse'

/** The command line on the database of a service. */
const cliOf =
  ({ deps }: TestService, env: Record<string, string> = {}) =>
  (line: string, input?: string | Buffer) =>
    authHere(
      line.split(' '),
      { AUTH_DATABASE_URL: deps.config.database.url, AUTH_PASSWORD_HASH_MEMORY_KIB: '64', ...env },
      input,
    )

const signIn = (service: TestService, email: string, typed: string) =>
  service.post('/token?grant_type=password', { email, password: typed })

test('an exported passkey signs in after it was imported', async ({ service }) => {
  const at = await service.with(PASSKEYS)
  const passkey = await withPasskey(at, { aaguid: 'bada5566-a7aa-401f-bd96-45619a55120d' })
  expect((await passkeySignIn(at, passkey)).status).toBe(200)
  const { stdout } = await cliOf(service)('users export')
  const lines = stdout.split('\n').filter(Boolean)
  const line = JSON.parse(lines.find((each) => each.includes(passkey.userId)) as string)
  expect(line.passkeys).toMatchObject([{ friendly_name: '1Password', sign_count: 1, transports: ['usb'] }])
  expect(lines.filter((each) => each.includes('"passkeys"'))).toHaveLength(1)
  const other = { ...line, id: crypto.randomUUID(), email: 'other-of-key@example.com', identities: [] }
  expect(await importLines(service, [other])).toMatchObject({ reasons: [[1, 'identity belongs to another user']] })
  const [key] = line.passkeys
  for (const [wrong, reason] of [
    [{ ...line, id: undefined, passkeys: [key] }, 'passkeys need the id of their user'],
    [{ ...line, passkeys: 'x' }, 'passkeys must be an array of at most 100'],
    [{ ...line, passkeys: [null] }, 'passkeys must hold objects'],
    [{ ...line, passkeys: [{ ...key, public_key: '+' }] }, 'public_key of a passkey must be base64url'],
    [{ ...line, passkeys: [{ ...key, sign_count: -1 }] }, 'sign_count of a passkey must be a count'],
    [{ ...line, passkeys: [{ ...key, aaguid: 'x' }] }, 'aaguid of a passkey must be a UUID'],
  ]) {
    expect((await importLines(service, [wrong])).reasons).toEqual([[1, reason]])
  }
  await service.delete(`/admin/users/${passkey.userId}`, service.admin)
  expect((await passkeySignIn(at, passkey)).status).toBe(400)
  expect(await importLines(service, [line])).toMatchObject({ imported: 1 })
  const { status, body } = await passkeySignIn(at, passkey)
  expect([status, body.user?.id]).toEqual([200, passkey.userId])
  // The count went with it.
  expect((await passkeySignIn(at, passkey, { counter: 1 })).status).toBe(400)
  expect((await cliOf(service)(`users show ${passkey.userId}`)).stdout).toMatch(
    /^passkeys {6}[\da-f-]{36} {2}1Password {2}\d{4}/m,
  )
  await at.close()
})

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
    const { body } = await service.get('/admin/audit?query=action:user_signedup&per_page=1000', service.admin)
    const named = ({ payload }: { payload: { traits?: { user_id?: string } } }) => payload.traits?.user_id === user.id
    expect(body.find(named)?.payload).toMatchObject({ actor_username: 'cli' })
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
    const { stdout } = await cli('users ban BANNED@example.com --for 1d --json')
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

  test('shown with state, identities, factors, devices, sessions and messages', async ({ service }) => {
    const trusting = { AUTH_MFA_TRUSTED_DEVICE_TTL: '30d' }
    const cli = cliOf(service, trusting)
    const user = await withTotp(service)
    const at = await service.with(trusting)
    expect((await at.post('/factors/trusted-devices', { name: 'Laptop' }, user.auth)).status).toBe(200)
    await at.close()
    const name = 'lost\u001b[2Jphone'
    await service.put(`/admin/users/${user.userId}/factors/${user.totp.id}`, { friendly_name: name }, service.admin)
    const { email } = (await service.get(`/admin/users/${user.userId}`, service.admin)).body
    await service.post('/recover', { email })
    await service.mailbox.waitFor(email)
    await service.settled()
    expect((await cli(`users show ${user.userId}`)).stdout).toMatch(/^devices {7}[0-9a-f-]{36} {2}Laptop {2}/m)
    // It ends the devices.
    await cli(`users ban ${user.userId} --for 24h`)
    const { code, stdout, stderr } = await cli(`users show ${user.userId}`)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.split('\n').map((line) => line.trimEnd())
    for (const part of [
      /^id {12}[0-9a-f-]{36}$/,
      /^state {9}banned until \d{4}-\d\d-\d\d \d\d:\d\d$/,
      /^e-mail {8}\S+@\S+, proven /,
      /^phone {9}-$/,
      /^password {6}set$/,
      /^identities {4}email {2}/,
      /^sessions {6}[0-9a-f-]{36} {2}aal2 /,
      /^messages {6}[0-9a-f-]{36} {2}mail recovery {2}sent /,
    ])
      expect(lines).toContainEqual(expect.stringMatching(part))
    expect(stdout).toContain(`${user.totp.id}  totp  verified  lost?[2Jphone`)
    const json = JSON.parse((await cli(`users show ${user.userId} --json`)).stdout)
    expect(json).toMatchObject({
      user: { id: user.userId, factors: expect.arrayContaining([expect.objectContaining({ id: user.totp.id })]) },
      trusted_devices: [],
      sessions: [{ aal: 'aal2' }],
      messages: [{ kind: 'recovery', state: 'sent' }],
    })
    const nobody = await cli('users show nobody@example.com')
    expect(nobody).toEqual({ code: 1, stdout: '', stderr: 'there is no such user\n' })
  })

  test('confirmed: a user who waits for a mail can sign in', async ({ service }) => {
    const cli = cliOf(service)
    const { body } = await service.post('/admin/users', { email: 'waits@example.com', password }, service.admin)
    expect((await signIn(service, 'waits@example.com', password)).status).toBe(400)
    expect(await cli('users confirm waits@example.com')).toEqual({
      code: 0,
      stdout: `${body.id} has proven waits@example.com\n`,
      stderr: '',
    })
    expect((await signIn(service, 'waits@example.com', password)).status).toBe(200)
    const none = await cli(`users confirm ${body.id} --phone`)
    expect(none).toMatchObject({ code: 1, stderr: `${body.id} has no phone number\n` })
  })

  test('moved to another address, and refused one of another user', async ({ service }) => {
    const cli = cliOf(service)
    const { userId } = await service.signedIn('before@example.com', password)
    await service.signedIn('taken@example.com', password)
    expect(await cli('users set-email before@example.com After@example.com')).toMatchObject({
      code: 0,
      stdout: `${userId} has the address after@example.com, proven\n`,
    })
    expect((await signIn(service, 'after@example.com', password)).status).toBe(200)
    const taken = await cli(`users set-email ${userId} taken@example.com --confirm`)
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('already been registered') })
    const pending = await service.post('/admin/users', { phone: '+4915187650001' }, service.admin)
    const unproven = await cli(`users set-email ${pending.body.id} pending@example.com`)
    expect(unproven.stdout).toBe(`${pending.body.id} has the address pending@example.com, not proven yet\n`)
  })

  test('signed out everywhere', async ({ service }) => {
    const { refreshToken, userId } = await service.signedIn('out@example.com', password)
    expect(await cliOf(service)('users sign-out out@example.com')).toMatchObject({
      code: 0,
      stdout: `${userId} has no session\n`,
    })
    const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
    expect(refreshed.status).toBe(400)
  })

  test('freed of a lost second factor', async ({ service }) => {
    const cli = cliOf(service)
    const { userId, totp, auth } = await withTotp(service)
    const removed = await cli(`users remove-factor ${userId} ${totp.id}`)
    expect(removed).toEqual({ code: 0, stdout: `${userId} has no longer totp ${totp.id}\n`, stderr: '' })
    expect((await service.get('/user', auth)).body.factors).toBeUndefined()
    const again = await cli(`users remove-factor ${userId} ${totp.id}`)
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('not found') })
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

test('failed messages are listed and sent again', async ({ service }) => {
  const cli = cliOf(service)
  const list = async (options: string) => JSON.parse((await cli(`messages list --json ${options}`)).stdout)
  await service.mailbox.answer(550)
  const { body } = await service.post('/invite', { email: 'refused@example.com' }, service.admin)
  await expect.poll(() => list(`--user ${body.id} --state failed`)).toHaveLength(1)
  await service.mailbox.accept()
  const [{ id, last_error: reason }] = await list(`--user ${body.id} --channel mail --limit 1`)
  const { stdout } = await cli(`messages list --user ${body.id}`)
  expect(stdout).toMatch(new RegExp(`^${id}  \\S+Z  failed   mail invite +1 attempts  ${body.id}  `))
  expect(stdout).toContain(reason)
  expect(stdout).not.toContain('refused@example.com')
  expect(await cli(`messages retry ${id}`)).toEqual({ code: 0, stdout: `${id} (mail invite) is queued\n`, stderr: '' })
  await service.mailbox.waitFor('refused@example.com')
  await expect.poll(() => list(`--user ${body.id} --state sent`)).toHaveLength(1)
  expect(await cli(`messages retry ${id}`)).toMatchObject({
    code: 1,
    stderr: 'Only a failed message can be sent again\n',
  })
})

test.for<[string, number, string]>([
  ['messages list --state lost', 64, '--state must be one of queued, sent, failed, dropped'],
  ['messages list --channel post', 64, '--channel must be one of mail, sms'],
  ['messages list --limit 10001', 64, '--limit must be a number from 1 to 10000'],
  ['messages list --user ada', 64, '--user must be the id of a user'],
  ['messages retry 1', 1, 'There is no such message'],
  ['messages retry 00000000-0000-4000-8000-000000000001', 1, 'There is no such message'],
  ['users set-email 00000000-0000-4000-8000-000000000001 nonsense', 1, 'invalid format'],
  ['users remove-factor 00000000-0000-4000-8000-000000000001 x', 1, 'there is no such user'],
])('%s ends with %i: %s', async ([line, code, words], { service }) => {
  const result = await cliOf(service)(line)
  expect(result).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(words) })
})
