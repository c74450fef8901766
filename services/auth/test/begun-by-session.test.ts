// Requests of a session are completed only while that session would be accepted, whichever way it ended. Changes of
// address: stolen-session.test.ts.
import { beforeAll, describe, expect, test } from 'vitest'
import { askToLink, identityIn, newPerson } from './linked-identities.ts'
import { type OpenIdProvider, startOpenIdProvider, visitFrom } from './openid-provider.ts'
import { challenge, enrollTotp, totpCode, verifyTotp } from './second-factors.ts'
import { type Answer, codeIn, linkPath, queryOf, startTestService, type TestService, toSignedIn } from './service.ts'

const password = 'correct horse'
const VERIFIER = 'v'.repeat(43)
const PKCE = { code_challenge: VERIFIER, code_challenge_method: 'plain' }

type Auth = { authorization: string }

interface Session {
  auth: Auth
  refreshToken: string
}

interface Begun {
  service: TestService
  email: string
  /** The session that begins, perhaps a thief's, by an account at the provider. */
  first: Session
  /** One with a second factor, where the user has one. */
  strong?: Session
}

let google: OpenIdProvider
let shared: TestService
/** The same, but that sessions end by themselves. */
let limited: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  shared = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
    AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
  })
  limited = await shared.with({
    AUTH_SESSIONS_SINGLE_PER_USER: 'true',
    AUTH_SESSIONS_TIMEBOX: '150',
    AUTH_SESSIONS_INACTIVITY_TIMEOUT: '100',
  })
  return async () => {
    await limited.close()
    await shared.close()
    await google.close()
  }
})

const signIn = async (service: TestService, email: string): Promise<Session> =>
  toSignedIn((await service.post('/token?grant_type=password', { email, password })).body)

async function signInAtGoogle(service: TestService, email: string): Promise<Session> {
  const iat = Math.floor(service.clock.now().getTime() / 1000)
  const id_token = await google.idToken({ sub: email, email, email_verified: true, iat, exp: iat + 300 })
  return toSignedIn((await service.post('/token?grant_type=id_token', { provider: 'google', id_token })).body)
}

/** A user with a password, and a session that began at the provider. */
async function robbed(service: TestService): Promise<Begun> {
  const { email } = newPerson()
  await service.post('/admin/users', { email, password, email_confirm: true }, service.admin)
  return { service, email, first: await signInAtGoogle(service, email) }
}

const errorOf = ({ body }: Answer): string | undefined => body?.error_code

/**
 * Request of a session; `begin` returns the step that completes it, in another session, and resolves to the refusal.
 */
interface Thing {
  refusal: string
  begin(begun: Begun): Promise<(auth: Auth) => Promise<string | undefined>>
}

/** Those of the provider are first: it keeps real time, from which the clock of the test departs. */
const THINGS: Record<string, Thing> = {
  'an identity being linked': {
    refusal: 'session_not_found',
    async begin({ service, first }) {
      google.next(newPerson())
      const callback = await visitFrom(service, google, (await askToLink(service, first.auth)).body.url)
      return async () => queryOf(await service.get(callback.pathname + callback.search)).error_code
    },
  },
  'a code of the PKCE flow for a linked identity': {
    refusal: 'flow_state_not_found',
    async begin({ service, first }) {
      google.next(newPerson())
      const query = new URLSearchParams({ provider: 'google', skip_http_redirect: 'true', ...PKCE })
      const { body } = await service.get(`/user/identities/authorize?${query}`, first.auth)
      const callback = await visitFrom(service, google, body.url)
      const { code } = queryOf(await service.get(callback.pathname + callback.search))
      return () => exchange(service, code)
    },
  },
  'a nonce': {
    refusal: 'reauthentication_not_valid',
    async begin({ service, email, first }) {
      await service.get('/reauthenticate', first.auth)
      const nonce = codeIn((await service.mailbox.waitFor(email)).text)
      return async (auth) => errorOf(await service.put('/user', { password: 'another horse', nonce }, auth))
    },
  },
  'a factor being enrolled': {
    refusal: 'mfa_factor_not_found',
    async begin({ service, first }) {
      const totp = await enrollTotp(service, first)
      return async (auth) => errorOf(await verifyTotp(service, { auth }, totp))
    },
  },
  'a challenge': {
    refusal: 'mfa_factor_not_found',
    async begin(begun) {
      const { service, email } = begun
      const totp = await enrollTotp(service, begun.first)
      begun.strong = toSignedIn((await verifyTotp(service, begun.first, totp)).body)
      begun.first = await signInAtGoogle(service, email)
      const challenge_id = await challenge(service, begun.first, totp.id)
      return async (auth) => {
        const code = totpCode(totp.secret, service.clock.now(), 1)
        return errorOf(await service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, auth))
      }
    },
  },
  'a code of the PKCE flow for a change of address': {
    refusal: 'flow_state_not_found',
    async begin(begun) {
      const { service, first } = begun
      begun.email = newPerson().email
      await service.put('/user', { email: begun.email, ...PKCE }, first.auth)
      const { code } = queryOf(await service.get(linkPath((await service.mailbox.waitFor(begun.email)).text)))
      return () => exchange(service, code)
    },
  },
}

const exchange = async (service: TestService, code: string | undefined) =>
  errorOf(await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: VERIFIER }))

interface End {
  isLimit?: true
  end(begun: Begun): Promise<void>
}

/** Ends of the first session. */
const ENDS: Record<string, End> = {
  'signing out there': {
    async end({ service, first }) {
      expect((await service.post('/logout?scope=local', {}, first.auth)).status).toBe(204)
    },
  },
  'unlinking the identity that it began with': {
    async end({ service, email, strong }) {
      const { auth } = strong ?? (await signIn(service, email))
      const id = identityIn((await service.get('/user', auth)).body, 'google')
      expect((await service.delete(`/user/identities/${id}`, auth)).status).toBe(200)
    },
  },
  'a newer sign-in where only the newest session is valid': {
    isLimit: true,
    async end({ service, email }) {
      await signIn(service, email)
    },
  },
  inactivity: {
    isLimit: true,
    async end({ service }) {
      service.clock.advance({ seconds: 101 })
    },
  },
  'its longest time': {
    isLimit: true,
    async end({ service, first }) {
      service.clock.advance({ seconds: 76 })
      const { refreshToken: refresh_token } = first
      expect((await service.post('/token?grant_type=refresh_token', { refresh_token })).status).toBe(200)
      service.clock.advance({ seconds: 75 })
    },
  },
}

describe.for(Object.entries(THINGS))('%s', ([, { begin, refusal }]) => {
  test('is completed by another session while its own is in use', async () => {
    const begun = await robbed(shared)
    const complete = await begin(begun)
    const { auth } = await signIn(shared, begun.email)
    expect(await complete(auth)).toBeUndefined()
  })

  test.for(Object.entries(ENDS))('ends with %s', async ([, { isLimit, end }]) => {
    const begun = await robbed(isLimit ? limited : shared)
    const complete = await begin(begun)
    await end(begun)
    const { auth } = await signIn(begun.service, begun.email)
    expect(await complete(auth)).toBe(refusal)
  })
})
