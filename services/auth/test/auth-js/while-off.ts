// Answers to the methods of the public client while their capability is off: those of the reference. The calls:
// ../auth-js-off.test.ts; docs/reference/client-methods.ts prints the codes.
import type { ClientMethod } from './methods.ts'

type Answer = [status: number, code: string, message: string]

const PASSKEYS: Answer = [404, 'passkey_disabled', 'Passkeys are disabled']
const OAUTH: Answer = [404, 'feature_disabled', 'OAuth server is disabled']
const CUSTOM: Answer = [404, 'feature_disabled', 'Custom OAuth providers are disabled']
const NO_EMAIL = 'Email signups are disabled'
const NO_LINKING: Answer = [404, 'manual_linking_disabled', 'Manual linking is disabled']
const TOTP: Answer = [422, 'mfa_totp_verify_not_enabled', 'MFA verification is disabled for TOTP']
const NO_KEYS: Answer = [422, 'mfa_webauthn_enroll_not_enabled', 'MFA enroll is disabled for WebAuthn']
const KEYS: Answer = [422, 'mfa_webauthn_verify_not_enabled', 'MFA verification is disabled for WebAuthn']
const CODES: Answer = [422, 'mfa_recovery_codes_enroll_not_enabled', 'Recovery codes are disabled']

/** Answers of capabilities that can be off, or do not exist yet. */
export const WHILE_OFF = {
  signInAnonymously: [422, 'anonymous_provider_disabled', 'Anonymous sign-ins are disabled'],
  signUp: [422, 'signup_disabled', 'Signups not allowed for this instance'],
  signInWithPassword: [422, 'email_provider_disabled', NO_EMAIL],
  signInWithOtp: [422, 'email_provider_disabled', NO_EMAIL],
  resend: [400, 'email_provider_disabled', NO_EMAIL],
  resetPasswordForEmail: [400, 'email_provider_disabled', NO_EMAIL],
  signInWithOAuth: [400, 'validation_failed', 'Unsupported provider: provider is not enabled'],
  signInWithIdToken: [400, 'provider_disabled', 'Provider (issuer "https://accounts.google.com") is not enabled'],
  signInWithSSO: [404, 'saml_provider_disabled', 'SAML 2.0 is disabled'],
  signInWithWeb3: [422, 'web3_provider_disabled', 'Web3 provider is disabled'],
  linkIdentity: NO_LINKING,
  unlinkIdentity: NO_LINKING,
  'mfa.enroll': [422, 'mfa_totp_enroll_not_enabled', 'MFA enroll is disabled for TOTP'],
  'mfa.challenge': TOTP,
  'mfa.verify': TOTP,
  'mfa.challengeAndVerify': TOTP,
  'mfa.webauthn.enroll': NO_KEYS,
  'mfa.webauthn.register': NO_KEYS,
  'mfa.webauthn.challenge': KEYS,
  'mfa.webauthn.authenticate': KEYS,
  'mfa.webauthn.verify': KEYS,
  'mfa.recoveryCodes.generate': CODES,
  'mfa.recoveryCodes.regenerate': CODES,
  'mfa.recoveryCodes.verify': [422, 'mfa_recovery_codes_verify_not_enabled', 'Recovery codes are disabled'],
  signInWithPasskey: PASSKEYS,
  registerPasskey: PASSKEYS,
  'passkey.startRegistration': PASSKEYS,
  'passkey.verifyRegistration': PASSKEYS,
  'passkey.startAuthentication': PASSKEYS,
  'passkey.verifyAuthentication': PASSKEYS,
  'passkey.list': PASSKEYS,
  'passkey.update': PASSKEYS,
  'passkey.delete': PASSKEYS,
  'oauth.getAuthorizationDetails': OAUTH,
  'oauth.approveAuthorization': OAUTH,
  'oauth.denyAuthorization': OAUTH,
  'oauth.listGrants': OAUTH,
  'oauth.revokeGrant': OAUTH,
  'admin.oauth.listClients': OAUTH,
  'admin.oauth.createClient': OAUTH,
  'admin.oauth.getClient': OAUTH,
  'admin.oauth.updateClient': OAUTH,
  'admin.oauth.deleteClient': OAUTH,
  'admin.oauth.regenerateClientSecret': OAUTH,
  'admin.customProviders.listProviders': CUSTOM,
  'admin.customProviders.createProvider': CUSTOM,
  'admin.customProviders.getProvider': CUSTOM,
  'admin.customProviders.updateProvider': CUSTOM,
  'admin.customProviders.deleteProvider': CUSTOM,
} satisfies Partial<Record<ClientMethod, Answer>>
