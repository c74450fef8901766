// Answers to each method of the public client while its capability is off: those of the reference.
import { AuthAdminApi, AuthClient, type GoTrueClient } from '@supabase/auth-js'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { clientOf, password, type Running, signIn } from './auth-js/client.ts'
import { METHODS } from './auth-js/methods.ts'
import { WHILE_OFF } from './auth-js/while-off.ts'
import { startTestService } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

const ID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const EMAIL = 'off@example.com'

const WEBAUTHN = { rpId: 'site.example', rpOrigins: ['https://site.example'] }

interface Caller {
  client: GoTrueClient
  admin: InstanceType<typeof AuthAdminApi>
  userId: string
  totp: string
  key: string
}

type Disabled = keyof typeof WHILE_OFF
type Call = (caller: Caller) => unknown

const CALLS: Record<Disabled, Call> = {
  signInAnonymously: ({ client }) => client.signInAnonymously(),
  signUp: ({ client }) => client.signUp({ email: 'new@example.com', password }),
  signInWithPassword: ({ client }) => client.signInWithPassword({ email: EMAIL, password }),
  signInWithOtp: ({ client }) => client.signInWithOtp({ email: EMAIL }),
  resend: ({ client }) => client.resend({ type: 'signup', email: EMAIL }),
  resetPasswordForEmail: ({ client }) => client.resetPasswordForEmail(EMAIL),
  // The method only builds the address; a browser goes there.
  signInWithOAuth: async ({ client }) => {
    const { data } = await client.signInWithOAuth({ provider: 'github', options: { skipBrowserRedirect: true } })
    const answer = await fetch(String(data.url), { headers: { 'x-supabase-api-version': '2024-01-01' } })
    return { error: { status: answer.status, ...((await answer.json()) as object) } }
  },
  signInWithIdToken: ({ client }) => client.signInWithIdToken({ provider: 'google', token: 'a.b.c' }),
  signInWithSSO: ({ client }) => client.signInWithSSO({ domain: 'example.com' }),
  signInWithWeb3: ({ client }) =>
    client.signInWithWeb3({ chain: 'solana', message: 'a message of some length', signature: new Uint8Array(64) }),
  linkIdentity: ({ client }) => client.linkIdentity({ provider: 'github' }),
  unlinkIdentity: async ({ client }) => {
    const { data } = await client.getUserIdentities()
    const [identity] = data?.identities ?? []
    return identity && client.unlinkIdentity(identity)
  },
  'mfa.enroll': ({ client }) => client.mfa.enroll({ factorType: 'totp', friendlyName: 'another' }),
  'mfa.challenge': ({ client, totp }) => client.mfa.challenge({ factorId: totp }),
  'mfa.verify': ({ client, totp }) => client.mfa.verify({ factorId: totp, challengeId: ID, code: '123456' }),
  'mfa.challengeAndVerify': ({ client, totp }) => client.mfa.challengeAndVerify({ factorId: totp, code: '123456' }),
  'mfa.webauthn.enroll': ({ client }) => client.mfa.webauthn.enroll({ friendlyName: 'another key' }),
  'mfa.webauthn.register': ({ client }) =>
    client.mfa.webauthn.register({ friendlyName: 'another key', webauthn: WEBAUTHN }),
  'mfa.webauthn.challenge': ({ client, key }) => client.mfa.webauthn.challenge({ factorId: key, webauthn: WEBAUTHN }),
  'mfa.webauthn.authenticate': ({ client, key }) =>
    client.mfa.webauthn.authenticate({ factorId: key, webauthn: WEBAUTHN }),
  'mfa.webauthn.verify': ({ client, key }) => {
    const webauthn = { ...WEBAUTHN, type: 'request', credential_response: { toJSON: () => ({}) } } as never
    return client.mfa.webauthn.verify({ factorId: key, challengeId: ID, webauthn })
  },
  'mfa.recoveryCodes.generate': ({ client }) => client.mfa.recoveryCodes.generate({ friendlyName: 'paper' }),
  'mfa.recoveryCodes.regenerate': ({ client }) => client.mfa.recoveryCodes.regenerate(),
  'mfa.recoveryCodes.verify': ({ client }) => client.mfa.recoveryCodes.verify({ code: 'abcd-efgh-ijkl-mnop' }),
  signInWithPasskey: ({ client }) => client.signInWithPasskey(),
  registerPasskey: ({ client }) => client.registerPasskey(),
  'passkey.startRegistration': ({ client }) => client.passkey.startRegistration(),
  'passkey.verifyRegistration': ({ client }) =>
    client.passkey.verifyRegistration({ challengeId: ID, credential: {} as never }),
  'passkey.startAuthentication': ({ client }) => client.passkey.startAuthentication(),
  'passkey.verifyAuthentication': ({ client }) =>
    client.passkey.verifyAuthentication({ challengeId: ID, credential: {} as never }),
  'passkey.list': ({ client }) => client.passkey.list(),
  'passkey.update': ({ client }) => client.passkey.update({ passkeyId: ID, friendlyName: 'mine' }),
  'passkey.delete': ({ client }) => client.passkey.delete({ passkeyId: ID }),
  'oauth.getAuthorizationDetails': ({ client }) => client.oauth.getAuthorizationDetails(ID),
  'oauth.approveAuthorization': ({ client }) => client.oauth.approveAuthorization(ID),
  'oauth.denyAuthorization': ({ client }) => client.oauth.denyAuthorization(ID),
  'oauth.listGrants': ({ client }) => client.oauth.listGrants(),
  'oauth.revokeGrant': ({ client }) => client.oauth.revokeGrant({ clientId: ID }),
  'admin.oauth.listClients': ({ admin }) => admin.oauth.listClients(),
  'admin.oauth.createClient': ({ admin }) =>
    admin.oauth.createClient({ client_name: 'app', redirect_uris: ['https://app.example/callback'] }),
  'admin.oauth.getClient': ({ admin }) => admin.oauth.getClient(ID),
  'admin.oauth.updateClient': ({ admin }) => admin.oauth.updateClient(ID, { client_name: 'other' }),
  'admin.oauth.deleteClient': ({ admin }) => admin.oauth.deleteClient(ID),
  'admin.oauth.regenerateClientSecret': ({ admin }) => admin.oauth.regenerateClientSecret(ID),
  'admin.customProviders.listProviders': ({ admin }) => admin.customProviders.listProviders(),
  'admin.customProviders.createProvider': ({ admin }) =>
    admin.customProviders.createProvider({ provider_type: 'oidc', identifier: 'custom:x' } as never),
  'admin.customProviders.getProvider': ({ admin }) => admin.customProviders.getProvider('custom:x'),
  'admin.customProviders.updateProvider': ({ admin }) =>
    admin.customProviders.updateProvider('custom:x', { name: 'other' }),
  'admin.customProviders.deleteProvider': ({ admin }) => admin.customProviders.deleteProvider('custom:x'),
}

/** Methods without a capability that could be off. */
const ALWAYS = [
  ...['initialize', 'isThrowOnErrorEnabled', 'onAuthStateChange', 'startAutoRefresh', 'stopAutoRefresh', 'dispose'],
  ...['getSession', 'setSession', 'refreshSession', 'signOut', 'getUser', 'updateUser', 'getUserIdentities'],
  ...['getClaims', 'exchangeCodeForSession', 'verifyOtp', 'reauthenticate'],
  ...['mfa.listFactors', 'mfa.unenroll', 'mfa.getAuthenticatorAssuranceLevel'],
  ...['mfa.recoveryCodes.getStatus', 'mfa.recoveryCodes.unenroll'],
  ...['admin.signOut', 'admin.inviteUserByEmail', 'admin.generateLink', 'admin.createUser', 'admin.listUsers'],
  ...['admin.getUserById', 'admin.updateUserById', 'admin.deleteUser', 'admin.mfa.listFactors'],
  'admin.mfa.deleteFactor',
  // Passkeys stay while they are disabled.
  ...['admin.passkey.listPasskeys', 'admin.passkey.deletePasskey'],
]

test('each method of the library has an answer while its capability is off, or none that could be', () => {
  expect([...Object.keys(WHILE_OFF), ...ALWAYS].toSorted()).toEqual(Object.keys(METHODS).toSorted())
})

describe('off, the client gets the answer of the reference from', () => {
  let caller: Caller

  beforeAll(async () => {
    const gateways = await startSmsGateways()
    const on = await startTestService({
      ...gateways.settings('twilio'),
      AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
      AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
    })
    const off = await on.with({
      AUTH_DISABLE_SIGNUP: 'true',
      AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
      AUTH_EXTERNAL_PHONE_ENABLED: 'false',
      AUTH_MFA_TOTP_ENROLL_ENABLED: 'false',
      AUTH_MFA_TOTP_VERIFY_ENABLED: 'false',
      AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'false',
      AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'false',
      AUTH_MFA_RECOVERY_CODES_ENABLED: 'false',
      AUTH_CUSTOM_OAUTH_ENABLED: 'false',
    })
    const running = async (service: typeof on): Promise<Running> => ({
      service,
      url: await service.app.listen({ port: 0, host: '127.0.0.1' }),
    })
    const [enabled, disabled] = [await running(on), await running(off)]
    const { client: before } = clientOf(enabled)
    const { session, user } = await signIn(enabled, before, EMAIL)
    const totp = await before.mfa.enroll({ factorType: 'totp', friendlyName: 'app' })
    const key = await before.mfa.enroll({ factorType: 'webauthn', friendlyName: 'key' })
    if (!totp.data || !key.data) throw totp.error ?? key.error
    const { url } = disabled
    // Not those of ./auth-js/client.ts, which note the methods that exist here.
    const experimental = { recoveryCodes: true, passkey: true } as object
    const client = new AuthClient({ url, autoRefreshToken: false, persistSession: false, experimental })
    await client.setSession(session)
    const admin = new AuthAdminApi({ url, headers: { Authorization: off.admin.authorization } })
    caller = { client, admin, userId: user.id, totp: totp.data.id, key: key.data.id }
    return async () => {
      await off.close()
      await on.close()
      await gateways.close()
    }
  })

  test.for(Object.entries(CALLS))('%s', async ([name, call]) => {
    const [status, code, message] = WHILE_OFF[name as Disabled]
    if (/passkey|webauthn/i.test(name)) pretendBrowser()
    const { error } = (await call(caller)) as { error: { status: number; code: string; message: string } }
    expect([error.status, error.code, error.message]).toEqual([status, code, message])
  })
})

/** The library asks no server for keys and passkeys where the browser knows none. */
function pretendBrowser(): void {
  const credentials = { create: async () => null, get: async () => null }
  vi.stubGlobal('window', { PublicKeyCredential: {} })
  vi.stubGlobal('document', {})
  vi.stubGlobal('navigator', { credentials })
  onTestFinished(() => void vi.unstubAllGlobals())
}
