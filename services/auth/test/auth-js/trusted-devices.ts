// A trusted device through the library, which has no method of its own for it: by its own fetch, and by global headers.
import { expect } from 'vitest'
import { claimsOf, totpCode } from '../second-factors.ts'
import { clientOf, password, type Running, signIn, test } from './client.ts'

/** A browser that keeps the device's token, and stores each next one. */
function browser(at: Running) {
  const kept = { token: '' }
  const { client } = clientOf(at, 'pkce', {
    fetch: async (input, init) => {
      const headers = new Headers(init?.headers)
      if (kept.token) headers.set('x-device-token', kept.token)
      const answer = await fetch(input, { ...init, headers })
      kept.token = answer.headers.get('x-device-token') ?? kept.token
      return answer
    },
  })
  return { client, kept }
}

test('a device that was trusted after a factor is not asked for one again', async ({ open }) => {
  const email = 'js-device@example.com'
  const { client, kept } = browser(open)
  await signIn(open, client, email)
  const { data: factor } = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'app' })
  const code = totpCode(factor?.totp.secret as string, open.service.clock.now())
  expect((await client.mfa.challengeAndVerify({ factorId: factor?.id as string, code })).error).toBeNull()
  const { data } = await client.getSession()
  const authorization = { authorization: `Bearer ${data.session?.access_token}` }
  kept.token = (await open.service.post('/factors/trusted-devices', {}, authorization)).body.token
  const first = kept.token
  for (let count = 0; count < 2; count++) {
    await client.signOut({ scope: 'local' })
    expect((await client.signInWithPassword({ email, password })).error).toBeNull()
    expect(await client.mfa.getAuthenticatorAssuranceLevel()).toMatchObject({
      error: null,
      data: { currentLevel: 'aal2', nextLevel: 'aal2' },
    })
  }
  const token = kept.token
  expect(token).not.toBe(first)
  // A refresh uses nothing up, although it has the header too.
  expect((await client.refreshSession()).error).toBeNull()
  expect(kept.token).toBe(token)
  const refused = await client.updateUser({ password: 'another horse' })
  expect(refused.error).toMatchObject({ status: 401, code: 'insufficient_aal' })

  const { client: global } = clientOf(open, 'pkce', { headers: { 'x-device-token': token } })
  const signedIn = await global.signInWithPassword({ email, password })
  expect(claimsOf({ accessToken: signedIn.data.session?.access_token as string }).aal).toBe('aal2')
  await client.signOut()
  expect((await client.signInWithPassword({ email, password })).error).toBeNull()
  expect((await client.mfa.getAuthenticatorAssuranceLevel()).data).toMatchObject({
    ...{ currentLevel: 'aal1', nextLevel: 'aal2' },
  })
})
