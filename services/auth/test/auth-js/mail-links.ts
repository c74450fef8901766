// Every method that sends a mail, in both flows, and what the application makes of the link.
import type { GoTrueClient } from '@supabase/auth-js'
import { describe, expect } from 'vitest'
import { clientOf, type FlowType, follow, newest, password, signIn, test } from './client.ts'

describe.each(['implicit', 'pkce'] as const)('the link of a mail, in the %s flow', (flow) => {
  test('of signUp', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const email = `signup-${flow}@example.com`
    const made = await client.signUp({ email, password, options: { data: { name: 'Ada' } } })
    expect(made).toMatchObject({
      error: null,
      data: { session: null, user: { email, user_metadata: { name: 'Ada' } } },
    })
    expect((await client.signInWithPassword({ email, password })).error).toMatchObject({
      status: 400,
      code: 'email_not_confirmed',
    })
    expect(await takeSession(flow, client, await follow(open, email))).toMatchObject({
      error: null,
      data: { user: { email } },
    })
  })

  test('of resend', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const email = `resend-${flow}@example.com`
    await client.signUp({ email, password })
    await open.service.mailbox.waitFor(email)
    open.service.clock.advance({ seconds: 901 })
    const before = newest(open, email)
    expect((await client.resend({ type: 'signup', email })).error).toBeNull()
    expect((await takeSession(flow, client, await follow(open, email, before))).error).toBeNull()
  })

  test('of signInWithOtp, of a new and of a known address', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const email = `otp-${flow}@example.com`
    const options = { data: { plan: 'pro' }, emailRedirectTo: 'https://site.example/app' }
    expect((await client.signInWithOtp({ email, options })).error).toBeNull()
    const target = await follow(open, email)
    expect(target.pathname).toBe('/app')
    expect(await takeSession(flow, client, target)).toMatchObject({
      error: null,
      data: { user: { user_metadata: { plan: 'pro' } } },
    })
    open.service.clock.advance({ seconds: 61 })
    const before = newest(open, email)
    expect((await client.signInWithOtp({ email })).error).toBeNull()
    expect((await takeSession(flow, client, await follow(open, email, before))).error).toBeNull()
  })

  test('of resetPasswordForEmail, then updateUser', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const email = `reset-${flow}@example.com`
    await signIn(open, clientOf(open).client, email)
    expect((await client.resetPasswordForEmail(email)).error).toBeNull()
    expect((await takeSession(flow, client, await follow(open, email))).error).toBeNull()
    expect((await client.updateUser({ password: '123' })).error).toMatchObject({
      name: 'AuthWeakPasswordError',
      reasons: ['length'],
    })
    expect((await client.updateUser({ password: 'remembered now' })).error).toBeNull()
    expect((await client.signInWithPassword({ email, password })).error).toMatchObject({ code: 'invalid_credentials' })
    expect((await client.signInWithPassword({ email, password: 'remembered now' })).error).toBeNull()
  })

  test('of updateUser with another address, confirmed by both', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const [from, to] = [`move-${flow}@example.com`, `moved-${flow}@example.com`]
    await signIn(open, client, from)
    expect(await client.updateUser({ email: to })).toMatchObject({ error: null, data: { user: { new_email: to } } })
    const asked = await open.service.mailbox.waitFor(from)
    const sent = await open.service.mailbox.waitFor(to)
    open.service.clock.advance({ seconds: 901 })
    expect((await client.resend({ type: 'email_change', email: from })).error).toBeNull()
    expect((await follow(open, from, asked)).href).toContain('message=')
    expect(await takeSession(flow, client, await follow(open, to, sent))).toMatchObject({
      error: null,
      data: { user: { email: to } },
    })
  })

  test('says in the address why it is refused', async ({ open }) => {
    const { client } = clientOf(open, flow)
    const email = `late-${flow}@example.com`
    await client.signUp({ email, password })
    await open.service.mailbox.waitFor(email)
    open.service.clock.advance({ seconds: 3601 })
    const target = await follow(open, email)
    const told = flow === 'pkce' ? target.searchParams : new URLSearchParams(target.hash.slice(1))
    expect(Object.fromEntries(told)).toMatchObject({ error: 'access_denied', error_code: 'otp_expired' })
  })
})

test('a code of the PKCE flow is worth nothing to another client', async ({ open }) => {
  const { client } = clientOf(open, 'pkce')
  const email = 'stolen@example.com'
  await client.signUp({ email, password })
  const code = (await follow(open, email)).searchParams.get('code') as string
  const { client: thief } = clientOf(open, 'pkce')
  await thief.signUp({ email: 'thief@example.com', password })
  expect((await thief.exchangeCodeForSession(code)).error).toMatchObject({ status: 400, code: 'bad_code_verifier' })
  expect((await client.exchangeCodeForSession(code)).error).toBeNull()
})

/** The session of a followed link, as an application takes it from the address bar. */
async function takeSession(flow: FlowType, client: GoTrueClient, target: URL) {
  if (flow === 'pkce') return client.exchangeCodeForSession(target.searchParams.get('code') as string)
  const fragment = new URLSearchParams(target.hash.slice(1))
  return client.setSession({
    access_token: fragment.get('access_token') as string,
    refresh_token: fragment.get('refresh_token') as string,
  })
}
