// The admin part of the library, seen from the client of an affected user.
import { describe, expect } from 'vitest'
import { adminOf, clientOf, password, signIn, test } from './client.ts'

test('createUser, getUserById, listUsers and deleteUser, soft and hard', async ({ strict }) => {
  const admin = adminOf(strict)
  const email = 'managed@example.com'
  const created = await admin.createUser({ email, password, email_confirm: true, app_metadata: { team: 'red' } })
  expect(created).toMatchObject({ error: null, data: { user: { email, app_metadata: { team: 'red' } } } })
  expect((await admin.createUser({ email })).error).toMatchObject({ status: 422, code: 'email_exists' })
  const id = created.data.user?.id as string
  expect(await admin.getUserById(id)).toMatchObject({ error: null, data: { user: { id, email } } })

  await admin.createUser({ phone: '4915100000301' })
  const all = await admin.listUsers()
  const total = all.data.users.length
  expect(all).toMatchObject({ error: null, data: { aud: 'authenticated', total, nextPage: null, lastPage: 1 } })
  expect(await admin.listUsers({ page: 1, perPage: 1 })).toMatchObject({
    error: null,
    data: { users: [{}], total, nextPage: 2, lastPage: total },
  })

  expect((await admin.deleteUser(id, true)).error).toBeNull()
  expect((await admin.getUserById(id)).data.user).toMatchObject({ id, deleted_at: expect.any(String) })
  expect((await admin.deleteUser(id)).error).toBeNull()
  expect((await admin.getUserById(id)).error).toMatchObject({ status: 404, code: 'user_not_found' })
})

test('updateUserById changes addresses, metadata, role, password and ban', async ({ open }) => {
  const admin = adminOf(open)
  const { client } = clientOf(open)
  const { user } = await signIn(open, client, 'changed@example.com')
  const change = (attributes: Parameters<typeof admin.updateUserById>[1]) => admin.updateUserById(user.id, attributes)
  const addresses = { email: 'renamed@example.com', phone: '4915100000302' }
  expect(await change({ ...addresses, email_confirm: true, phone_confirm: true })).toMatchObject({
    error: null,
    data: { user: { ...addresses, email_confirmed_at: expect.any(String), phone_confirmed_at: expect.any(String) } },
  })
  expect((await client.signInWithPassword({ phone: addresses.phone, password })).error).toBeNull()
  const fields = { user_metadata: { a: 1 }, app_metadata: { plan: 'gold' }, role: 'editor' }
  expect(await change(fields)).toMatchObject({ error: null, data: { user: fields } })
  expect((await client.refreshSession()).data.user).toMatchObject(fields)

  expect((await change({ ban_duration: '1h' })).data.user).toMatchObject({ banned_until: expect.any(String) })
  const signInAgain = () => client.signInWithPassword({ email: addresses.email, password })
  expect((await signInAgain()).error?.code).toBe('user_banned')
  expect((await change({ ban_duration: 'none' })).error).toBeNull()
  expect((await signInAgain()).error).toBeNull()
  expect((await change({ password: 'set by admin' })).error).toBeNull()
  expect((await signInAgain()).error?.code).toBe('invalid_credentials')
  expect((await change({ ban_duration: 'forever' })).error).toMatchObject({ status: 400, code: 'validation_failed' })
})

test('signOut ends the sessions of the token, in each scope', async ({ open }) => {
  const admin = adminOf(open)
  const [{ client: one }, { client: two }] = [clientOf(open), clientOf(open)]
  const isAlive = async () => [one, two].map(async (client) => !(await client.refreshSession()).error)
  const scopes = { local: [false, true], others: [true, false], global: [false, false] } as const
  for (const [scope, alive] of Object.entries(scopes)) {
    const { session } = await signIn(open, one, 'ended@example.com')
    await signIn(open, two, 'ended@example.com')
    expect((await admin.signOut(session.access_token, scope as keyof typeof scopes)).error).toBeNull()
    expect(await Promise.all(await isAlive())).toEqual(alive)
  }
})

test('inviteUserByEmail sends a mail that confirms its recipient', async ({ open }) => {
  const admin = adminOf(open)
  const email = 'guest@example.com'
  const invited = await admin.inviteUserByEmail(email, { data: { team: 1 }, redirectTo: 'https://site.example/join' })
  expect(invited).toMatchObject({ error: null, data: { user: { email, user_metadata: { team: 1 } } } })
  const { text } = await open.service.mailbox.waitFor(email)
  expect(text).toContain('&redirect_to=https://site.example/join')
  const hash = /token=([\w-]+)/.exec(text)?.[1] as string
  const { client } = clientOf(open)
  expect(await client.verifyOtp({ type: 'invite', token_hash: hash })).toMatchObject({
    error: null,
    data: { user: { email, email_confirmed_at: expect.any(String) } },
  })
})

describe('generateLink', () => {
  const redirectTo = 'https://site.example/app'

  test.for(['signup', 'invite', 'magiclink', 'recovery'] as const)(
    '%s: its link, its code and its hash sign in',
    async (type, { open }) => {
      const admin = adminOf(open)
      const { client } = clientOf(open)
      const generate = async (email: string) => {
        if (type === 'magiclink' || type === 'recovery') await admin.createUser({ email, email_confirm: true })
        const options = { redirectTo, data: { team: 1 } }
        const link = await (type === 'signup'
          ? admin.generateLink({ type, email, password, options })
          : admin.generateLink({ type, email, options }))
        expect(link).toMatchObject({
          error: null,
          data: { user: { email }, properties: { verification_type: type, redirect_to: redirectTo } },
        })
        if (!link.data.properties) throw new Error('no link')
        return link.data.properties
      }
      const byHash = await generate(`hash-${type}@example.com`)
      expect((await client.verifyOtp({ type, token_hash: byHash.hashed_token })).error).toBeNull()
      const email = `code-${type}@example.com`
      const byCode = await generate(email)
      expect((await client.verifyOtp({ type, email, token: byCode.email_otp })).error).toBeNull()
      const { pathname, search } = new URL((await generate(`link-${type}@example.com`)).action_link)
      expect((await open.service.get(pathname + search)).headers.location).toContain(`${redirectTo}#access_token=`)
    },
  )

  test('email_change_current and email_change_new: both together change the address', async ({ open }) => {
    const admin = adminOf(open)
    const { client } = clientOf(open)
    const [email, newEmail] = ['links-old@example.com', 'links-new@example.com']
    await admin.createUser({ email, email_confirm: true })
    const hashes: string[] = []
    for (const type of ['email_change_current', 'email_change_new'] as const) {
      const { data, error } = await admin.generateLink({ type, email, newEmail })
      expect([error, data.properties?.verification_type]).toEqual([null, type])
      hashes.push(data.properties?.hashed_token as string)
    }
    const [current, next] = hashes as [string, string]
    const half = await client.verifyOtp({ type: 'email_change', token_hash: current })
    expect(half).toMatchObject({ error: null, data: { session: null } })
    expect(await client.verifyOtp({ type: 'email_change', token_hash: next })).toMatchObject({
      error: null,
      data: { user: { email: newEmail } },
    })
  })
})
