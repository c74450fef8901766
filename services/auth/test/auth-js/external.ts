// Signing in at providers, linking and unlinking, as the library does it in a browser.
import { createHash } from 'node:crypto'
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider, visitFrom } from '../openid-provider.ts'
import { test as base, clientOf, type FlowType, type Running, signIn, startRunning } from './client.ts'

const test = base.extend<object & { google: OpenIdProvider; external: Running }>({
  google: perFile(() => startOpenIdProvider()),
  external: [
    async ({ google }, use) => {
      const running = await startRunning({
        ...google.settings('GOOGLE'),
        AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
      })
      await use(running)
      await running.close()
    },
    { scope: 'file' },
  ],
})

/** The browser's way from an address of ours to the provider, through its pages and back to the application. */
async function browse({ service }: Running, google: OpenIdProvider, address: string): Promise<URL> {
  const callback = await visitFrom(service, google, address)
  return new URL(String((await service.get(callback.pathname + callback.search)).headers.location))
}

let people = 0
const newPerson = () => {
  const sub = `js-${people++}`
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Jay' }
}

const toldBy = (target: URL, flow: FlowType) =>
  flow === 'pkce' ? target.searchParams : new URLSearchParams(target.hash.slice(1))

describe.each(['implicit', 'pkce'] as const)('in the %s flow', (flow) => {
  test('signInWithOAuth leads to a session with the tokens of the provider', async ({ external, google }) => {
    const { client } = clientOf(external, flow)
    const person = newPerson()
    google.next(person)
    const { data, error } = await client.signInWithOAuth({
      provider: 'google',
      options: { redirectTo: 'https://site.example/app', scopes: 'phone', queryParams: { prompt: 'consent' } },
    })
    expect([error, data.provider]).toEqual([null, 'google'])
    const target = await browse(external, google, data.url as string)
    expect(target.origin + target.pathname).toBe('https://site.example/app')
    const told = toldBy(target, flow)
    const signedIn =
      flow === 'pkce'
        ? await client.exchangeCodeForSession(told.get('code') as string)
        : await client.setSession({
            access_token: told.get('access_token') as string,
            refresh_token: told.get('refresh_token') as string,
          })
    expect(signedIn).toMatchObject({ error: null, data: { user: { email: person.email } } })
    expect(told.get('provider_token') ?? signedIn.data.session?.provider_token).toBeTruthy()
    expect((await client.refreshSession()).error).toBeNull()
    expect((await client.getUserIdentities()).data?.identities).toMatchObject([{ provider: 'google', id: person.sub }])
  })

  test('linkIdentity and unlinkIdentity', async ({ external, google }) => {
    const { client } = clientOf(external, flow)
    const person = newPerson()
    await signIn(external, client, `links-${flow}@example.com`)
    google.next(person)
    const { data, error } = await client.linkIdentity({ provider: 'google' })
    expect(error).toBeNull()
    const target = await browse(external, google, data.url as string)
    if (flow === 'pkce') await client.exchangeCodeForSession(toldBy(target, flow).get('code') as string)
    const identities = (await client.getUserIdentities()).data?.identities ?? []
    expect(identities.map(({ provider }) => provider)).toEqual(['email', 'google'])
    const linked = identities.find(({ provider }) => provider === 'google')
    expect((await client.unlinkIdentity(linked as NonNullable<typeof linked>)).error).toBeNull()
    expect((await client.getUserIdentities()).data?.identities).toHaveLength(1)
  })
})

test('linkIdentity takes a token that an application got by itself, too', async ({ external, google }) => {
  const { client } = clientOf(external)
  await signIn(external, client, 'links-token@example.com')
  const person = newPerson()
  const { data, error } = await client.linkIdentity({ provider: 'google', token: await google.idToken(person) })
  expect([error, data.user?.email]).toEqual([null, 'links-token@example.com'])
  const identities = (await client.getUserIdentities()).data?.identities ?? []
  expect(identities.map(({ provider, id }) => [provider, id])).toContainEqual(['google', person.sub])
})

test('signInWithIdToken takes a token that an application got by itself', async ({ external, google }) => {
  const { client } = clientOf(external)
  const person = newPerson()
  const nonce = 'of the application'
  const hashed = createHash('sha256').update(nonce).digest('hex')
  const token = await google.idToken({ ...person, nonce: hashed })
  const { data, error } = await client.signInWithIdToken({ provider: 'google', token, nonce })
  expect([error, data.user?.email]).toEqual([null, person.email])
  const other = await client.signInWithIdToken({ provider: 'google', token, nonce: 'another' })
  expect(other.error?.message).toBe('Nonces mismatch')
})
