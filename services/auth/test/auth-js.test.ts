import { AuthClient } from '@supabase/auth-js'
import { expect } from 'vitest'
import { linkPath, test } from './service.ts'

test('@supabase/auth-js signs up, signs in, refreshes, reads and updates the user and signs out', async ({
  service,
}) => {
  const url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  const store = new Map<string, string>()
  const client = new AuthClient({
    url,
    autoRefreshToken: false,
    persistSession: true,
    storage: {
      getItem: (key) => store.get(key) ?? null,
      setItem: (key, value) => void store.set(key, value),
      removeItem: (key) => void store.delete(key),
    },
  })
  const email = 'client@example.com'
  const password = 'correct horse'

  const signUp = await client.signUp({ email, password, options: { data: { name: 'Ada' } } })
  expect(signUp.error).toBeNull()
  expect(signUp.data).toMatchObject({ session: null, user: { email, user_metadata: { name: 'Ada' } } })

  const early = await client.signInWithPassword({ email, password })
  expect(early.error).toMatchObject({ status: 400, code: 'email_not_confirmed' })

  const mail = await service.mailbox.waitFor(email)
  const token = new URLSearchParams(linkPath(mail.text).split('?')[1]).get('token') as string
  const verified = await client.verifyOtp({ type: 'email', token_hash: token })
  expect(verified).toMatchObject({ error: null, data: { user: { email } } })

  const signIn = await client.signInWithPassword({ email, password })
  expect(signIn).toMatchObject({ error: null, data: { user: { email }, session: { token_type: 'bearer' } } })
  const firstToken = signIn.data.session?.refresh_token

  const refreshed = await client.refreshSession()
  expect(refreshed.error).toBeNull()
  expect(refreshed.data.session?.refresh_token).not.toBe(firstToken)

  expect(await client.getUser()).toMatchObject({ error: null, data: { user: { email } } })
  const updated = await client.updateUser({ data: { name: 'Ada L.' }, password: 'a new horse' })
  expect(updated).toMatchObject({ error: null, data: { user: { user_metadata: { name: 'Ada L.' } } } })
  const weak = await client.updateUser({ password: '123' })
  expect(weak.error).toMatchObject({ name: 'AuthWeakPasswordError', reasons: ['length'] })

  expect(await client.signOut()).toEqual({ error: null })
  const after = await client.signInWithPassword({ email, password })
  expect(after.error).toMatchObject({ status: 400, code: 'invalid_credentials' })
  expect((await client.signInWithPassword({ email, password: 'a new horse' })).error).toBeNull()
})
