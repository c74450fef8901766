// Answers to each method of the public client while its capability is off: those of the reference.
import { AuthAdminApi, AuthClient, type GoTrueClient } from '@supabase/auth-js'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { clientOf, password, type Running, signIn } from './auth-js/client.ts'
import { METHODS } from './auth-js/methods.ts'
import { startTestService } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

type Answer = [status: number, code: string, message: string]

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

const PASSKEYS: Answer = [404, 'passkey_disabled', 'Passkeys are disabled']
const OAUTH: Answer = [404, 'feature_disabled', 'OAuth server is disabled']
const CUSTOM: Answer = [404, 'feature_disabled', 'Custom OAuth providers are disabled']
const NO_EMAIL = 'Email signups are disabled'
const NO_LINKING: Answer = [404, 'manual_linking_disabled', 'Manual linking is disabled']
const TOTP: Answer = [422, 'mfa_totp_verify_not_enabled', 'MFA verification is disabled for TOTP']
const NO_KEYS: Answer = [422, 'mfa_webauthn_enroll_not_enabled', 'MFA enroll is disabled for WebAuthn']
const KEYS: Answer = [422, 'mfa_webauthn_verify_not_enabled', 'MFA verification is disabled for WebAuthn']
const CODES: Answer = [422, 'mfa_recovery_codes_enroll_not_enabled', 'Recovery codes are disabled']

type Call = (caller: Caller) => unknown

const OFF: Record<string, [Answer, Call]> = {
  signInAnonymously: [
    [422, 'anonymous_provider_disabled', 'Anonymous sign-ins are disabled'],
    ({ client }) => client.signInAnonymously(),
  ],
  signUp: [
    [422, 'signup_disabled', 'Signups not allowed for this instance'],
    ({ client }) => client.signUp({ email: 'new@example.com', password }),
  ],
  signInWithPassword: [
    [422, 'email_provider_disabled', NO_EMAIL],
    ({ client }) => client.signInWithPassword({ email: EMAIL, password }),
  ],
  signInWithOtp: [[422, 'email_provider_disabled', NO_EMAIL], ({ client }) => client.signInWithOtp({ email: EMAIL })],
  resend: [[400, 'email_provider_disabled', NO_EMAIL], ({ client }) => client.resend({ type: 'signup', email: EMAIL })],
  resetPasswordForEmail: [
    [400, 'email_provider_disabled', NO_EMAIL],
    ({ client }) => client.resetPasswordForEmail(EMAIL),
  ],
  signInWithOAuth: [
    [400, 'validation_failed', 'Unsupported provider: provider is not enabled'],
    // The method only builds the address; a browser goes there.
    async ({ client }) => {
      const { data } = await client.signInWithOAuth({ provider: 'github', options: { skipBrowserRedirect: true } })
      const answer = await fetch(String(data.url), { headers: { 'x-supabase-api-version': '2024-01-01' } })
      return { error: { status: answer.status, ...((await answer.json()) as object) } }
    },
  ],
  signInWithIdToken: [
    [400, 'provider_disabled', 'Provider (issuer "https://accounts.google.com") is not enabled'],
    ({ client }) => client.signInWithIdToken({ provider: 'google', token: 'a.b.c' }),
  ],
  signInWithSSO: [
    [404, 'saml_provider_disabled', 'SAML 2.0 is disabled'],
    ({ client }) => client.signInWithSSO({ domain: 'example.com' }),
  ],
  signInWithWeb3: [
    [422, 'web3_provider_disabled', 'Web3 provider is disabled'],
    ({ client }) =>
      client.signInWithWeb3({ chain: 'solana', message: 'a message of some length', signature: new Uint8Array(64) }),
  ],
  linkIdentity: [NO_LINKING, ({ client }) => client.linkIdentity({ provider: 'github' })],
  unlinkIdentity: [
    NO_LINKING,
    async ({ client }) => {
      const { data } = await client.getUserIdentities()
      const [identity] = data?.identities ?? []
      return identity && client.unlinkIdentity(identity)
    },
  ],
  'mfa.enroll': [
    [422, 'mfa_totp_enroll_not_enabled', 'MFA enroll is disabled for TOTP'],
    ({ client }) => client.mfa.enroll({ factorType: 'totp', friendlyName: 'another' }),
  ],
  'mfa.challenge': [TOTP, ({ client, totp }) => client.mfa.challenge({ factorId: totp })],
  'mfa.verify': [TOTP, ({ client, totp }) => client.mfa.verify({ factorId: totp, challengeId: ID, code: '123456' })],
  'mfa.challengeAndVerify': [
    TOTP,
    ({ client, totp }) => client.mfa.challengeAndVerify({ factorId: totp, code: '123456' }),
  ],
  'mfa.webauthn.enroll': [NO_KEYS, ({ client }) => client.mfa.webauthn.enroll({ friendlyName: 'another key' })],
  'mfa.webauthn.register': [
    NO_KEYS,
    ({ client }) => client.mfa.webauthn.register({ friendlyName: 'another key', webauthn: WEBAUTHN }),
  ],
  'mfa.webauthn.challenge': [
    KEYS,
    ({ client, key }) => client.mfa.webauthn.challenge({ factorId: key, webauthn: WEBAUTHN }),
  ],
  'mfa.webauthn.authenticate': [
    KEYS,
    ({ client, key }) => client.mfa.webauthn.authenticate({ factorId: key, webauthn: WEBAUTHN }),
  ],
  'mfa.webauthn.verify': [
    KEYS,
    ({ client, key }) => {
      const webauthn = { ...WEBAUTHN, type: 'request', credential_response: { toJSON: () => ({}) } } as never
      return client.mfa.webauthn.verify({ factorId: key, challengeId: ID, webauthn })
    },
  ],
  'mfa.recoveryCodes.generate': [CODES, ({ client }) => client.mfa.recoveryCodes.generate({ friendlyName: 'paper' })],
  'mfa.recoveryCodes.regenerate': [CODES, ({ client }) => client.mfa.recoveryCodes.regenerate()],
  'mfa.recoveryCodes.verify': [
    [422, 'mfa_recovery_codes_verify_not_enabled', 'Recovery codes are disabled'],
    ({ client }) => client.mfa.recoveryCodes.verify({ code: 'abcd-efgh-ijkl-mnop' }),
  ],
  signInWithPasskey: [PASSKEYS, ({ client }) => client.signInWithPasskey()],
  registerPasskey: [PASSKEYS, ({ client }) => client.registerPasskey()],
  'passkey.startRegistration': [PASSKEYS, ({ client }) => client.passkey.startRegistration()],
  'passkey.verifyRegistration': [
    PASSKEYS,
    ({ client }) => client.passkey.verifyRegistration({ challengeId: ID, credential: {} as never }),
  ],
  'passkey.startAuthentication': [PASSKEYS, ({ client }) => client.passkey.startAuthentication()],
  'passkey.verifyAuthentication': [
    PASSKEYS,
    ({ client }) => client.passkey.verifyAuthentication({ challengeId: ID, credential: {} as never }),
  ],
  'passkey.list': [PASSKEYS, ({ client }) => client.passkey.list()],
  'passkey.update': [PASSKEYS, ({ client }) => client.passkey.update({ passkeyId: ID, friendlyName: 'mine' })],
  'passkey.delete': [PASSKEYS, ({ client }) => client.passkey.delete({ passkeyId: ID })],
  'oauth.getAuthorizationDetails': [OAUTH, ({ client }) => client.oauth.getAuthorizationDetails(ID)],
  'oauth.approveAuthorization': [OAUTH, ({ client }) => client.oauth.approveAuthorization(ID)],
  'oauth.denyAuthorization': [OAUTH, ({ client }) => client.oauth.denyAuthorization(ID)],
  'oauth.listGrants': [OAUTH, ({ client }) => client.oauth.listGrants()],
  'oauth.revokeGrant': [OAUTH, ({ client }) => client.oauth.revokeGrant({ clientId: ID })],
  'admin.oauth.listClients': [OAUTH, ({ admin }) => admin.oauth.listClients()],
  'admin.oauth.createClient': [
    OAUTH,
    ({ admin }) => admin.oauth.createClient({ client_name: 'app', redirect_uris: ['https://app.example/callback'] }),
  ],
  'admin.oauth.getClient': [OAUTH, ({ admin }) => admin.oauth.getClient(ID)],
  'admin.oauth.updateClient': [OAUTH, ({ admin }) => admin.oauth.updateClient(ID, { client_name: 'other' })],
  'admin.oauth.deleteClient': [OAUTH, ({ admin }) => admin.oauth.deleteClient(ID)],
  'admin.oauth.regenerateClientSecret': [OAUTH, ({ admin }) => admin.oauth.regenerateClientSecret(ID)],
  'admin.customProviders.listProviders': [CUSTOM, ({ admin }) => admin.customProviders.listProviders()],
  'admin.customProviders.createProvider': [
    CUSTOM,
    ({ admin }) => admin.customProviders.createProvider({ provider_type: 'oidc', identifier: 'custom:x' } as never),
  ],
  'admin.customProviders.getProvider': [CUSTOM, ({ admin }) => admin.customProviders.getProvider('custom:x')],
  'admin.customProviders.updateProvider': [
    CUSTOM,
    ({ admin }) => admin.customProviders.updateProvider('custom:x', { name: 'other' }),
  ],
  'admin.customProviders.deleteProvider': [CUSTOM, ({ admin }) => admin.customProviders.deleteProvider('custom:x')],
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
  expect([...Object.keys(OFF), ...ALWAYS].toSorted()).toEqual(Object.keys(METHODS).toSorted())
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
    })
    const running = async (service: typeof on): Promise<Running> => ({
      service,
      gateways,
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

  test.for(Object.entries(OFF))('%s', async ([name, [[status, code, message], call]]) => {
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
