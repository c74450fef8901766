import { scryptSync } from 'node:crypto'
import { hash as argon2, argon2i } from 'argon2'
import bcrypt from 'bcrypt'
import { describe, expect } from 'vitest'
import { fillHashQueue } from '../../../test/full-hash-queue.ts'
import { importLines } from '../../../test/import-lines.ts'
import { type TestService, test } from '../../../test/service.ts'

const OLD = 'the old password'

const signIn = (service: TestService, email: string, password = OLD) =>
  service.post('/token?grant_type=password', { email, password })

async function storedHash(service: TestService, email: string): Promise<string> {
  const { rows } = await service.deps.pool.query('select password_hash from users where email = $1', [email])
  return rows[0]?.password_hash
}

let made = 0
const newEmail = () => `imported-${++made}@example.com`
const newUuid = () => crypto.randomUUID()

describe('imported users sign in with their old passwords', async () => {
  test('and stay signed in while too many others wait for a new hash', async ({ service }) => {
    const email = newEmail()
    await importLines(service, [{ email, email_verified: true, password_hash: await bcrypt.hash(OLD, 4) }])
    const { passwords } = service.deps
    const { verify } = passwords
    let empty = async () => {}
    // The others come after the password was found to be right, and before a hash of ours is made.
    passwords.verify = async (...given) => {
      const isRight = await verify(...given)
      empty = await fillHashQueue(service)
      return isRight
    }
    const { status } = await signIn(service, email)
    passwords.verify = verify
    await empty()
    expect(status).toBe(200)
    expect(await storedHash(service, email)).toMatch(/^\$2b/)
    expect((await signIn(service, email)).status).toBe(200)
    expect(await storedHash(service, email)).toMatch(/^\$argon2id/)
  })

  test('also several times at once, while the first sign-in replaces the hash', async ({ service }) => {
    const email = newEmail()
    // Slow enough to be verified still when the first sign-in has stored its own hash.
    await importLines(service, [{ email, email_verified: true, password_hash: await bcrypt.hash(OLD, 10) }])
    const answers = await Promise.all([1, 2, 3].map(() => signIn(service, email)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(await storedHash(service, email)).toMatch(/^\$argon2id\$v=19\$m=64,/)
  })

  const salt = Buffer.from('sixteen-byte-slt')
  const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  const scrypted = scryptSync(OLD, salt, 32, { N: 1024, r: 8, p: 1 })
  test.for([
    ['bcrypt', await bcrypt.hash(OLD, 4)],
    ['argon2i', await argon2(OLD, { type: argon2i, memoryCost: 64, timeCost: 3, parallelism: 1 })],
    ['scrypt', `$scrypt$ln=10,r=8,p=1$${base64(salt)}$${base64(scrypted)}`],
  ])('%s, which is replaced by a hash of ours', async ([, hash], { service }) => {
    const email = newEmail()
    await importLines(service, [{ email, email_verified: true, password_hash: hash }])
    expect(await signIn(service, email, 'a wrong password')).toMatchObject({ status: 400 })
    expect(await storedHash(service, email)).toBe(hash)
    expect(await signIn(service, email)).toMatchObject({ status: 200, body: { user: { email } } })
    expect(await storedHash(service, email)).toMatch(/^\$argon2id\$v=19\$m=64,/)
    expect(await signIn(service, email)).toMatchObject({ status: 200 })
    expect(await signIn(service, email, 'a wrong password')).toMatchObject({ status: 400 })
  })

  test('a password longer than bcrypt reads signs in and keeps its hash', async ({ service }) => {
    const email = newEmail()
    const long = 'x'.repeat(100)
    const hash = await bcrypt.hash(long, 4)
    await importLines(service, [{ email, email_verified: true, password_hash: hash }])
    expect(await signIn(service, email, long)).toMatchObject({ status: 200 })
    expect(await storedHash(service, email)).toBe(hash)
  })
})

test('the account is the one that the line describes', async ({ service }) => {
  const id = newUuid()
  const email = newEmail()
  const summary = await importLines(service, [
    {
      id: id.toUpperCase(),
      email: email.toUpperCase(),
      phone: '+491701234567',
      email_confirmed_at: '2024-05-01 12:00:00.123456+00',
      phone_verified: true,
      created_at: '2023-05-01T14:00:00+02:00',
      last_sign_in_at: '2024-06-01T00:00:00Z',
      role: 'editor',
      password_hash: await bcrypt.hash(OLD, 4),
      user_metadata: { name: 'Ada' },
      app_metadata: { plan: 'gold' },
      identities: [
        { provider: 'email', provider_id: email },
        {
          provider: 'github',
          provider_id: `github-${id}`,
          identity_data: { email },
          created_at: '2023-06-01T00:00:00Z',
        },
      ],
    },
  ])
  expect(summary).toMatchObject({ lines: 1, imported: 1, refused: 0, reasons: [] })
  const { body } = await signIn(service, email)
  expect(body.user).toMatchObject({
    id,
    email,
    phone: '491701234567',
    role: 'editor',
    aud: 'authenticated',
    email_confirmed_at: '2024-05-01T12:00:00.123Z',
    phone_confirmed_at: '2023-05-01T12:00:00.000Z',
    created_at: '2023-05-01T12:00:00.000Z',
    user_metadata: { name: 'Ada' },
    app_metadata: { plan: 'gold', provider: 'email', providers: ['email', 'github'] },
    identities: [
      { provider: 'email', id, user_id: id },
      { provider: 'github', id: `github-${id}`, user_id: id, identity_data: { email, sub: `github-${id}` } },
    ],
  })
})

test("an export of the reference's users table is read as it is", async ({ service }) => {
  const email = newEmail()
  const only = newEmail()
  const line = {
    instance_id: '00000000-0000-0000-0000-000000000000',
    id: newUuid(),
    aud: '',
    role: '',
    email,
    phone: null,
    encrypted_password: await bcrypt.hash(OLD, 4),
    email_confirmed_at: '2024-05-01 12:00:00+00',
    confirmation_token: '',
    raw_app_meta_data: '{"provider": "email", "providers": ["email"]}',
    raw_user_meta_data: { name: 'Ada' },
    is_super_admin: null,
    banned_until: null,
    deleted_at: null,
  }
  const google = { id: newUuid(), email: only, encrypted_password: '', raw_app_meta_data: { providers: ['google'] } }
  expect(await importLines(service, [line, google])).toMatchObject({ imported: 2 })
  const { body } = await signIn(service, email)
  expect(body.user).toMatchObject({ role: 'authenticated', user_metadata: { name: 'Ada' } })
  expect(body.user.identities).toMatchObject([{ provider: 'email', identity_data: { email, email_verified: true } }])
  // Came by an external provider only: no way in by e-mail is made up.
  const { rows } = await service.deps.pool.query('select 1 from identities where user_id = $1', [google.id])
  expect(rows).toEqual([])
})

test('an address to which an invitation is on its way is kept for the invited user', async ({ service }) => {
  const email = newEmail()
  await importLines(service, [{ email, invited_at: '2024-05-01T12:00:00Z' }])
  const { auth } = await service.signedIn(newEmail())
  const refused = await service.put('/user', { email }, auth)
  expect(refused).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
})

test('an unconfirmed address stays unconfirmed and a ban stays a ban', async ({ service }) => {
  const [fresh, banned] = [newEmail(), newEmail()]
  const password_hash = await bcrypt.hash(OLD, 4)
  await importLines(service, [
    { email: fresh, email_verified: false, password_hash },
    { email: banned, email_verified: true, password_hash, banned_until: '2999-01-01T00:00:00Z' },
  ])
  // A stranger may register the address, so its password counts for nothing before the proof.
  expect((await signIn(service, fresh)).body.error_code).toBe('invalid_credentials')
  expect((await signIn(service, banned)).body.error_code).toBe('user_banned')
})

test.for([
  ['nonsense', 'is not valid JSON'],
  ['[]', 'is not a JSON object'],
  ['null', 'is not a JSON object'],
  [{ user_metadata: {} }, 'needs an id, an email or a phone'],
  [{ email: '' }, 'needs an id, an email or a phone'],
  [{ email: 'nobody' }, 'email is not a valid address'],
  [{ email: 5 }, 'email must be a text of at most 1024 characters'],
  [{ phone: '12 34' }, 'phone must be E.164 digits'],
  [{ phone: '+0123' }, 'phone must be E.164 digits'],
  [{ id: '1234' }, 'id must be a UUID'],
  [{ email: 'a@b.example', created_at: '2024-05-01' }, /^created_at must be a time/],
  [{ email: 'a@b.example', created_at: '2024-05-01 12:00:00' }, /^created_at must be a time/],
  [{ email: 'a@b.example', email_confirmed_at: '2024-15-41T12:00:00Z' }, /^email_confirmed_at must be a time/],
  [{ email: 'a@b.example', created_at: '2024-02-30T12:00:00Z' }, /^created_at must be a time/],
  [{ email: 'a@b.example', banned_until: 'infinity' }, /^banned_until must be a time/],
  [{ email: 'a@b.example', password: OLD }, /^holds a plain password/],
  [{ email: 'a@b.example', password_hash: OLD }, /^password_hash is of an unknown format: leave it out/],
  [{ email: 'a@b.example', encrypted_password: '$1$abc' }, /^password_hash is an MD5-crypt hash: leave it out/],
  [{ email: 'a@b.example', user_metadata: 'text' }, 'user_metadata must be an object'],
  [{ email: 'a@b.example', app_metadata: [] }, 'app_metadata must be an object'],
  [
    { email: 'a@b.example', user_metadata: { long: 'x'.repeat(17_000) } },
    'user_metadata is too large or holds a number that is too long',
  ],
  [
    { email: 'a@b.example', user_metadata: { long: 1e300 } },
    'user_metadata is too large or holds a number that is too long',
  ],
  [
    {
      email: 'a@b.example',
      identities: [{ provider: 'github', provider_id: '1', identity_data: { long: 'x'.repeat(17_000) } }],
    },
    'identity_data is too large or holds a number that is too long',
  ],
  [{ email: 'a@b.example', user_metadata: { nul: '\0' } }, /^holds NUL or half characters/],
  ['{"email":"a@b.example","user_metadata":{"half":"\\ud800"}}', /^holds NUL or half characters/],
  [{ email: 'a@b.example', raw_user_meta_data: '{"nul":"\\u0000"}' }, 'cannot be stored by the database'],
  [{ email: 'a@b.example', deleted_at: '2024-05-01T00:00:00Z' }, 'has deleted_at: deleted users are not imported'],
  [{ email: 'a@b.example', identities: {} }, /^identities must be an array/],
  [{ email: 'a@b.example', identities: [null] }, 'identities must hold objects'],
  [{ email: 'a@b.example', identities: [{ provider: 'x y', provider_id: '1' }] }, 'identities need a provider'],
  [{ email: 'a@b.example', identities: [{ provider: 'github' }] }, 'identities need a provider_id'],
  [`{"email":"a@b.example","x":"${'x'.repeat(300_000)}"}`, /^is longer than/],
] as [object | string, string | RegExp][])(
  'refused by its number, without the lines around it: %j',
  async ([line, reason], { service }) => {
    const around = [newEmail(), newEmail()]
    const summary = await importLines(service, [{ email: around[0] }, line, { email: around[1] }])
    expect(summary).toMatchObject({ lines: 3, imported: 2, refused: 1 })
    expect(summary.reasons).toEqual([[2, typeof reason === 'string' ? reason : expect.stringMatching(reason)]])
  },
)

test('a second run adds what is missing and changes nothing that is there', async ({ service }) => {
  const first = { id: newUuid(), email: newEmail(), email_verified: true, password_hash: await bcrypt.hash(OLD, 4) }
  const lines = [first, { email: newEmail(), created_at: '2023-01-01T00:00:00Z' }, { phone: '+4915112345678' }]
  expect(await importLines(service, lines.slice(0, 2))).toMatchObject({ imported: 2 })
  const { body } = await signIn(service, first.email)
  const auth = { authorization: `Bearer ${body.access_token}` }
  await service.put('/user', { password: 'a new password', data: { since: 'the import' } }, auth)
  expect(await importLines(service, lines)).toMatchObject({ imported: 1, already_there: 2, refused: 0 })
  expect(await importLines(service, lines)).toMatchObject({ imported: 0, already_there: 3, refused: 0 })
  expect((await signIn(service, first.email)).status).toBe(400)
  const again = await signIn(service, first.email, 'a new password')
  expect(again.body.user).toMatchObject({ user_metadata: { since: 'the import' } })
})

test('an id, address or identity of another user is refused, in the same run and in later ones', async ({
  service,
}) => {
  const [id, email, phone] = [newUuid(), newEmail(), '+33612345678']
  const linked = newEmail()
  const identities = [{ provider: 'github', provider_id: `of-${id}` }]
  const lines = [
    { id, email, phone, identities },
    { id, email: newEmail() },
    { id: newUuid(), email },
    { id: newUuid(), email: newEmail(), phone },
    { id: newUuid(), email: linked, identities },
    { email, created_at: '2020-01-01T00:00:00Z' },
    { email: newEmail() },
  ]
  const refusals = [
    [2, 'id belongs to another user'],
    [3, 'email belongs to another user'],
    [4, 'phone belongs to another user'],
    [5, 'identity belongs to another user'],
    [6, 'email belongs to another user'],
  ]
  const first = await importLines(service, lines)
  expect(first).toMatchObject({ imported: 2, already_there: 0, refused: 5, reasons: refusals })
  const second = await importLines(service, lines)
  expect(second).toMatchObject({ imported: 0, already_there: 2, refused: 5, reasons: refusals })
  const { rows } = await service.deps.pool.query('select id from users where email = $1', [linked])
  expect(rows).toEqual([])
})

test('more users than one statement holds, with refusals in several', async ({ service }) => {
  const lines = Array.from({ length: 2_500 }, (_, index) =>
    index % 1_000 === 7 ? { email: 'not an address' } : { email: newEmail() },
  )
  const summary = await importLines(service, lines)
  expect(summary).toMatchObject({ lines: 2_500, imported: 2_497, refused: 3 })
  expect(summary.reasons.map(([line]) => line)).toEqual([8, 1_008, 2_008])
})

test('a dry run says what would happen and keeps nothing', async ({ service }) => {
  const email = newEmail()
  const lines = [{ email }, { email: 'not an address' }]
  expect(await importLines(service, lines, true)).toMatchObject({ imported: 1, refused: 1 })
  expect(await importLines(service, lines)).toMatchObject({ imported: 1, already_there: 0, refused: 1 })
  expect(await importLines(service, lines, true)).toMatchObject({ imported: 0, already_there: 1, refused: 1 })
})
