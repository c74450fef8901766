// Keys and codes by which users prove themselves: second factors, passkeys, and the relying party that both share.
import {
  boolean,
  duration,
  integer,
  list,
  oneOf,
  parsed,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { smsTemplate } from '../sms.ts'
import { parseRpId } from './relying-party.ts'

export const mfaVariables = {
  MFA_TOTP_ENROLL_ENABLED: boolean('Users may add an authenticator app as second factor.', { default: 'true' }),
  MFA_TOTP_VERIFY_ENABLED: boolean('Authenticator apps are accepted as second factor.', { default: 'true' }),
  MFA_PHONE_ENROLL_ENABLED: boolean('Users may add a phone number as second factor.', { default: 'false' }),
  MFA_PHONE_VERIFY_ENABLED: boolean('Codes by SMS are accepted as second factor.', { default: 'false' }),
  MFA_WEB_AUTHN_ENROLL_ENABLED: boolean('Users may add a security key as second factor.', { default: 'false' }),
  MFA_WEB_AUTHN_VERIFY_ENABLED: boolean('Security keys are accepted as second factor.', { default: 'false' }),
  MFA_RECOVERY_CODES_ENABLED: boolean('Users get recovery codes with their first second factor.', { default: 'true' }),
  MFA_REQUIRED_FOR: oneOf(
    ['nobody', 'admins', 'everybody'],
    'Users who must prove a second factor before they change a sign-in method or factor; admins also before they call admin endpoints.',
    { default: 'nobody' },
  ),
  MFA_CHALLENGE_EXPIRY_DURATION: duration('Validity of a challenge and its code.', { default: '300', positive: true }),
  MFA_FACTOR_EXPIRY_DURATION: duration('Time after which a new second factor may replace an unproven one.', {
    default: '300s',
    positive: true,
  }),
  MFA_MAX_ENROLLED_FACTORS: integer('Maximum second factors per user, proven or not.', {
    default: '10',
    min: 1,
    max: 100,
  }),
  MFA_MAX_VERIFIED_FACTORS: integer('Maximum proven second factors per user.', { default: '10', min: 1, max: 100 }),
  MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: integer(
    'Challenges and verifications per minute of one second factor by one session; twice as many per client address, and as many tokens of trusted devices.',
    { default: '15', min: 1 },
  ),
  MFA_PHONE_OTP_LENGTH: integer('Digits of codes sent to a second factor.', { default: '6', min: 6, max: 10 }),
  MFA_PHONE_MAX_FREQUENCY: duration('Minimum time between codes to one second factor.', { default: '1m' }),
  MFA_PHONE_TEMPLATE: smsTemplate('Text of SMS to a second factor; `{{ .Code }}` is the code.'),
  MFA_TRUSTED_DEVICE_TTL: duration(
    'Time in which a trusted device replaces the second factor at sign-ins; 0 disables trusted devices.',
    { default: '0' },
  ),
  MFA_MAX_TRUSTED_DEVICES: integer('Maximum trusted devices per user; a further one ends the least recently used.', {
    default: '10',
    min: 1,
    max: 100,
  }),
  WEBAUTHN_RP_ID: parsed(
    'string',
    'Domain that passkeys and security keys are bound to; unset: the application chooses for security keys, within its permitted origins.',
    {},
    parseRpId,
  ),
  WEBAUTHN_RP_DISPLAY_NAME: text("Name of the site in the browser's dialog; the host of AUTH_SITE_URL when unset."),
  WEBAUTHN_RP_ORIGINS: list(
    'Origins whose pages may use passkeys and security keys, `android:apk-key-hash:…` for apps; requires AUTH_WEBAUTHN_RP_ID.',
    {
      default: '',
    },
  ),
} satisfies Variables

export const mfaSettings = (values: Values<typeof mfaVariables>) => ({
  totp: { enroll: values.MFA_TOTP_ENROLL_ENABLED, verify: values.MFA_TOTP_VERIFY_ENABLED },
  phone: {
    enroll: values.MFA_PHONE_ENROLL_ENABLED,
    verify: values.MFA_PHONE_VERIFY_ENABLED,
    codeLength: values.MFA_PHONE_OTP_LENGTH,
    minGapSeconds: values.MFA_PHONE_MAX_FREQUENCY,
    template: values.MFA_PHONE_TEMPLATE,
  },
  webauthn: {
    enroll: values.MFA_WEB_AUTHN_ENROLL_ENABLED,
    verify: values.MFA_WEB_AUTHN_VERIFY_ENABLED,
    rpId: values.WEBAUTHN_RP_ID,
    displayName: values.WEBAUTHN_RP_DISPLAY_NAME,
    origins: values.WEBAUTHN_RP_ORIGINS,
  },
  recoveryCodes: values.MFA_RECOVERY_CODES_ENABLED,
  requiredFor: values.MFA_REQUIRED_FOR,
  challengeSeconds: values.MFA_CHALLENGE_EXPIRY_DURATION,
  unverifiedSeconds: values.MFA_FACTOR_EXPIRY_DURATION,
  maxEnrolled: values.MFA_MAX_ENROLLED_FACTORS,
  maxVerified: values.MFA_MAX_VERIFIED_FACTORS,
  trustedDevices: { ttlSeconds: values.MFA_TRUSTED_DEVICE_TTL, max: values.MFA_MAX_TRUSTED_DEVICES },
  attemptsPerMinute: values.MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY,
})
