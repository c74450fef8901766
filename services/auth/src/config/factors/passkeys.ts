import { boolean, duration, httpUrl, integer, type Values, type Variables } from '@services/common/config/variables'
import type { mfaVariables } from './mfa.ts'

/** Longest life of a challenge: the ids of used ones are stored that long. */
export const MAX_CHALLENGE_MINUTES = 60

export const passkeyVariables = {
  PASSKEY_ENABLED: boolean(
    'Users sign in with passkeys; requires AUTH_WEBAUTHN_RP_ID, AUTH_WEBAUTHN_RP_DISPLAY_NAME and AUTH_WEBAUTHN_RP_ORIGINS.',
    { default: 'false' },
  ),
  PASSKEY_SIGNUP_ENABLED: boolean('Users sign up with a passkey alone; requires AUTH_PASSKEY_ENABLED.', {
    default: 'false',
  }),
  PASSKEY_MAX_PASSKEYS_PER_USER: integer('Maximum passkeys per user.', { default: '10', min: 1, max: 100 }),
  PASSKEY_VERIFIED_IS_AAL2: boolean(
    'A passkey whose authenticator verified its user, now and at the registration, counts as two factors (aal2).',
    { default: 'false' },
  ),
  PASSKEY_ENROLL_URL: httpUrl('Page where users add a passkey, for password managers.'),
  PASSKEY_MANAGE_URL: httpUrl('Page where users manage their passkeys, for password managers.'),
  WEBAUTHN_CHALLENGE_EXPIRY_DURATION: duration('Time to answer a challenge for a passkey.', {
    default: '5m',
    positive: true,
    max: `${MAX_CHALLENGE_MINUTES}m`,
  }),
} satisfies Variables

type PasskeyValues = Values<typeof passkeyVariables>
type PartyValues = Pick<
  Values<typeof mfaVariables>,
  'WEBAUTHN_RP_ID' | 'WEBAUTHN_RP_DISPLAY_NAME' | 'WEBAUTHN_RP_ORIGINS'
>

/** `party` is the configured one alone; requests bring none. It is complete where passkeys are enabled. */
export const passkeySettings = (values: PasskeyValues & PartyValues) => ({
  enabled: values.PASSKEY_ENABLED,
  signUp: values.PASSKEY_SIGNUP_ENABLED,
  maxPerUser: values.PASSKEY_MAX_PASSKEYS_PER_USER,
  verifiedIsAal2: values.PASSKEY_VERIFIED_IS_AAL2,
  challengeSeconds: values.WEBAUTHN_CHALLENGE_EXPIRY_DURATION,
  pages: {
    ...(values.PASSKEY_ENROLL_URL && { enroll: values.PASSKEY_ENROLL_URL }),
    ...(values.PASSKEY_MANAGE_URL && { manage: values.PASSKEY_MANAGE_URL }),
  },
  party: {
    rpId: values.WEBAUTHN_RP_ID ?? '',
    rpName: values.WEBAUTHN_RP_DISPLAY_NAME ?? '',
    origins: values.WEBAUTHN_RP_ORIGINS,
  },
})

export const passkeyWarnings = (values: PasskeyValues): string[] =>
  values.PASSKEY_SIGNUP_ENABLED && !values.PASSKEY_ENABLED
    ? ['AUTH_PASSKEY_SIGNUP_ENABLED has no effect while AUTH_PASSKEY_ENABLED is false']
    : []

export function passkeyProblems(values: PasskeyValues & PartyValues): string[] {
  if (!values.PASSKEY_ENABLED) return []
  const { WEBAUTHN_RP_ID: id, WEBAUTHN_RP_DISPLAY_NAME: name, WEBAUTHN_RP_ORIGINS: origins } = values
  const missing = Object.entries({ ID: id, DISPLAY_NAME: name, ORIGINS: origins.length > 0 })
    .filter(([, value]) => !value)
    .map(([part]) => `AUTH_WEBAUTHN_RP_${part}`)
  return missing.length > 0 ? [`AUTH_PASSKEY_ENABLED requires ${missing.join(', ')}`] : []
}
