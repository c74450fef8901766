// Sessions and identities at a provider: which identity comes with a sign-in, and which sessions go with an identity.
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { identityIn, link, newPerson, type Person } from '../../../test/linked-identities.ts'
import { type OpenIdProvider, signInAt, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { refresh, withTotp } from '../../../test/second-factors.ts'
import {
  fragmentOf,
  linkPath,
  queryOf,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from '../../../test/service.ts'

let google: OpenIdProvider
let service: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_MAILER_NOTIFICATIONS_IDENTITY_LINKED_ENABLED: 'true',
  })
})
afterAll(async () => {
  await service.close()
  await google.close()
})

async function signIn(shown: Person, query = '') {
  google.next(shown)
  return signInAt(service, google, `/authorize?provider=google${query}`)
}

const sessionOf = (answer: Awaited<ReturnType<typeof signIn>>) => {
  const { access_token = '', refresh_token = '' } = fragmentOf(answer)
  return { auth: { authorization: `Bearer ${access_token}` }, refreshToken: refresh_token }
}

describe('signing in at a provider by the address of a user who has a second factor', () => {
  test('lets in at aal1 each time and links nothing', async () => {
    const owner = await withTotp(service)
    for (let time = 0; time < 2; time++) {
      const { auth } = sessionOf(await signIn(newPerson({ email: owner.email })))
      const { body } = await service.get('/user', auth)
      expect([body.id, body.app_metadata.providers]).toEqual([owner.userId, ['email']])
      expect((await service.put('/user', { password: 'another horse' }, auth)).body.error_code).toBe('insufficient_aal')
    }
    expect((await service.get('/user', owner.auth)).body.identities).toHaveLength(1)
  })

  test('links as before where the user has none, and notifies the owner', async () => {
    const { auth, userId } = await service.signedIn('without-a-factor@example.com')
    expect(fragmentOf(await signIn(newPerson({ email: 'without-a-factor@example.com' }))).access_token).toBeTruthy()
    expect((await service.mailbox.waitFor('without-a-factor@example.com')).text).toContain('google')
    const { body } = await service.get('/user', auth)
    expect([body.id, body.app_metadata.providers]).toEqual([userId, ['email', 'google']])
  })
})

describe('unlinking an identity', () => {
  /** A user with a password and one account at the provider, linked to it by the address. */
  async function withGoogle() {
    const shown = newPerson()
    const owner = await service.signedIn(shown.email)
    const session = sessionOf(await signIn(shown))
    const { body } = await service.get('/user', owner.auth)
    return {
      shown,
      owner,
      session,
      unlink: (auth: SignedIn['auth']) => service.delete(`/user/identities/${identityIn(body, 'google')}`, auth),
    }
  }
  const GONE = { status: 400, body: { error_code: 'refresh_token_not_found' } }

  test('ends the sessions that began with it, including those of another device by code, and no others', async () => {
    const { shown, owner, session, unlink } = await withGoogle()
    const verifier = randomBytes(32).toString('base64url')
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const pkce = `&code_challenge=${challenge}&code_challenge_method=s256`
    const exchange = async (code: string | undefined) =>
      service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
    const exchanged = toSignedIn((await exchange(queryOf(await signIn(shown, pkce)).code)).body)
    const { code: waiting } = queryOf(await signIn(shown, pkce))
    expect((await unlink(owner.auth)).status).toBe(200)
    for (const { refreshToken } of [session, exchanged])
      expect(await refresh(service, refreshToken)).toMatchObject(GONE)
    expect((await exchange(waiting)).body.error_code).toBe('flow_state_not_found')
    expect((await refresh(service, owner.refreshToken)).status).toBe(200)
  })

  test('keeps the session that asks, as a new password does', async () => {
    const { session, unlink } = await withGoogle()
    expect((await unlink(session.auth)).status).toBe(200)
    expect((await refresh(service, session.refreshToken)).status).toBe(200)
  })

  test('leaves sessions that began with another identity of the same provider', async () => {
    const { owner, session, unlink } = await withGoogle()
    const other = newPerson()
    await link(service, google, owner.auth, other)
    const kept = sessionOf(await signIn(other))
    expect((await unlink(owner.auth)).status).toBe(200)
    expect((await refresh(service, kept.refreshToken)).status).toBe(200)
    expect(await refresh(service, session.refreshToken)).toMatchObject(GONE)
  })

  test('cancels the change to an address that it reported', async () => {
    const lenient = await service.with({
      AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true',
      AUTH_EXTERNAL_GOOGLE_EMAIL_OPTIONAL: 'true',
    })
    const reported = newPerson({ email_verified: false })
    const signInHere = () => {
      google.next(reported)
      return signInAt(lenient, google, '/authorize?provider=google')
    }
    const { auth } = sessionOf(await signInHere())
    const { body } = await lenient.get('/user', auth)
    expect(body.new_email).toBe(reported.email)
    const { text } = await lenient.mailbox.waitFor(reported.email)
    const { email: _, email_verified: __, ...nameless } = newPerson()
    await link(lenient, google, auth, nameless as Person)
    expect((await lenient.delete(`/user/identities/${identityIn(body, 'google')}`, auth)).status).toBe(200)
    expect((await lenient.get('/user', auth)).body).not.toHaveProperty('new_email')
    expect(fragmentOf(await lenient.get(linkPath(text)))).toMatchObject({ error_code: 'otp_expired' })
    await lenient.close()
  })

  test('ends sessions from before they named their identity', async () => {
    const { owner, session, unlink } = await withGoogle()
    await service.deps.db
      .updateTable('sessions')
      .set({ identity_id: null })
      .where('user_id', '=', owner.userId)
      .execute()
    expect((await unlink(owner.auth)).status).toBe(200)
    expect(await refresh(service, session.refreshToken)).toMatchObject(GONE)
    expect((await refresh(service, owner.refreshToken)).status).toBe(200)
  })
})
