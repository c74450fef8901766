// Public methods of the client, each with the test of this folder that calls it at a running service. The names are
// those of its type declarations: another version with another method does not compile here. ../auth-js.test.ts checks
// the calls; docs/reference/client-methods.ts prints the table.
import type { GoTrueClient } from '@supabase/auth-js'

/** Paths of all methods of a type and of its groups, as `signUp` or `admin.mfa.listFactors`. */
type MethodsOf<Group, Path extends string = ''> = {
  [Name in keyof Group & string]: Name extends `_${string}`
    ? never
    : Group[Name] extends (...given: never[]) => unknown
      ? `${Path}${Name}`
      : MethodsOf<Group[Name], `${Path}${Name}.`>
}[keyof Group & string]

export type ClientMethod = MethodsOf<GoTrueClient>

export interface ShownBy {
  /** Name in this folder. */
  file: string
  title: string
}

/** A capability without tests here. */
export interface Missing {
  missing: string
}

const by =
  (file: string) =>
  (title: string): ShownBy => ({ file, title })
const [admin, codes, external] = [by('admin.ts'), by('codes.ts'), by('external.ts')]
const [links, mfa, passkeys] = [by('mail-links.ts'), by('mfa.ts'), by('passkeys.ts')]
const [sessions, web3] = [by('sessions.ts'), by('web3.ts')]

const TOKENS = sessions('getSession, getUser, setSession and refreshSession speak of one user and one session')
const INITIALIZE = sessions('initialize finds the session that another tab stored; throwOnError throws what is refused')
const REFRESHING = sessions('startAutoRefresh renews a session that is about to end, until stopAutoRefresh or dispose')
const BY_PHONE = codes('signUp, resend, verifyOtp and signInWithPassword')
const LINKING = external('linkIdentity and unlinkIdentity')
const APP = mfa('enroll, challenge, verify and unenroll of an authenticator app')
const KEY = mfa('webauthn.register and webauthn.authenticate, and their steps one by one')
const RECOVERY = mfa('recoveryCodes.getStatus, verify, regenerate, generate and unenroll')
const USERS = admin('createUser, getUserById, listUsers and deleteUser, soft and hard')
const PASSKEYS = passkeys('registerPasskey, signInWithPasskey, and list, update and delete of passkeys')
const PASSKEY_STEPS = passkeys('passkeys by single steps, and the reasons of refusals')
const PASSKEYS_OF_USER = passkeys('admin.passkey lists and deletes passkeys')
const FACTORS = mfa('admin.mfa lists and deletes factors')

const SAML: Missing = { missing: 'SAML 2.0: not built' }
const OAUTH = by('oauth-grants.ts')(
  'oauth: a consent page shows a request and answers it; the user lists and withdraws grants',
)
const CLIENTS = by('oauth-clients.ts')('admin.oauth registers, lists, changes and deletes clients, and renews a secret')
const CUSTOM = by('custom-providers.ts')(
  'customProviders: createProvider, listProviders, getProvider, updateProvider, deleteProvider',
)

export const METHODS: Record<ClientMethod, ShownBy | Missing> = {
  initialize: INITIALIZE,
  isThrowOnErrorEnabled: INITIALIZE,
  signUp: BY_PHONE,
  signInAnonymously: sessions('signInAnonymously, then a permanent account by address or by number'),
  signInWithPassword: BY_PHONE,
  signInWithOtp: codes('signInWithOtp of a new and of a known number, and not of a new one that is not wanted'),
  verifyOtp: codes('verifyOtp takes the code of each mail, or the token of its link, and refuses others'),
  resend: BY_PHONE,
  signInWithOAuth: external('signInWithOAuth leads to a session with the tokens of the provider'),
  exchangeCodeForSession: links('a code of the PKCE flow is worth nothing to another client'),
  signInWithIdToken: external('signInWithIdToken takes a token that an application got by itself'),
  signInWithWeb3: web3('signInWithWeb3 signs in with a wallet of Ethereum, with and without its other fields'),
  signInWithSSO: SAML,
  signInWithPasskey: PASSKEYS,
  registerPasskey: PASSKEYS,
  getSession: TOKENS,
  setSession: TOKENS,
  refreshSession: TOKENS,
  startAutoRefresh: REFRESHING,
  stopAutoRefresh: REFRESHING,
  dispose: REFRESHING,
  onAuthStateChange: sessions('onAuthStateChange reports every change of the session'),
  getClaims: sessions('of a token signed with a key of our set verifies by itself, with the set fetched once'),
  signOut: sessions('signOut in each scope'),
  getUser: TOKENS,
  updateUser: links('of updateUser with another address, confirmed by both'),
  reauthenticate: codes('reauthenticate sends the nonce that updateUser wants with a password'),
  resetPasswordForEmail: links('of resetPasswordForEmail, then updateUser'),
  getUserIdentities: LINKING,
  linkIdentity: LINKING,
  unlinkIdentity: LINKING,
  'mfa.enroll': APP,
  'mfa.challenge': APP,
  'mfa.verify': APP,
  'mfa.challengeAndVerify': APP,
  'mfa.unenroll': APP,
  'mfa.listFactors': APP,
  'mfa.getAuthenticatorAssuranceLevel': APP,
  'mfa.webauthn.enroll': KEY,
  'mfa.webauthn.challenge': KEY,
  'mfa.webauthn.verify': KEY,
  'mfa.webauthn.register': KEY,
  'mfa.webauthn.authenticate': KEY,
  'mfa.recoveryCodes.getStatus': RECOVERY,
  'mfa.recoveryCodes.generate': RECOVERY,
  'mfa.recoveryCodes.verify': RECOVERY,
  'mfa.recoveryCodes.regenerate': RECOVERY,
  'mfa.recoveryCodes.unenroll': RECOVERY,
  'passkey.startRegistration': PASSKEY_STEPS,
  'passkey.verifyRegistration': PASSKEY_STEPS,
  'passkey.startAuthentication': PASSKEY_STEPS,
  'passkey.verifyAuthentication': PASSKEY_STEPS,
  'passkey.list': PASSKEYS,
  'passkey.update': PASSKEYS,
  'passkey.delete': PASSKEYS,
  'oauth.getAuthorizationDetails': OAUTH,
  'oauth.approveAuthorization': OAUTH,
  'oauth.denyAuthorization': OAUTH,
  'oauth.listGrants': OAUTH,
  'oauth.revokeGrant': OAUTH,
  'admin.createUser': USERS,
  'admin.listUsers': USERS,
  'admin.getUserById': USERS,
  'admin.deleteUser': USERS,
  'admin.updateUserById': admin('updateUserById changes addresses, metadata, role, password and ban'),
  'admin.signOut': admin('signOut ends the sessions of the token, in each scope'),
  'admin.inviteUserByEmail': admin('inviteUserByEmail sends a mail that confirms its recipient'),
  'admin.generateLink': admin('email_change_current and email_change_new: both together change the address'),
  'admin.mfa.listFactors': FACTORS,
  'admin.mfa.deleteFactor': FACTORS,
  'admin.passkey.listPasskeys': PASSKEYS_OF_USER,
  'admin.passkey.deletePasskey': PASSKEYS_OF_USER,
  'admin.oauth.listClients': CLIENTS,
  'admin.oauth.createClient': CLIENTS,
  'admin.oauth.getClient': CLIENTS,
  'admin.oauth.updateClient': CLIENTS,
  'admin.oauth.deleteClient': CLIENTS,
  'admin.oauth.regenerateClientSecret': CLIENTS,
  'admin.customProviders.listProviders': CUSTOM,
  'admin.customProviders.createProvider': CUSTOM,
  'admin.customProviders.getProvider': CUSTOM,
  'admin.customProviders.updateProvider': CUSTOM,
  'admin.customProviders.deleteProvider': CUSTOM,
}
