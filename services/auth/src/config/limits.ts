import { boolean, headerName, integer, parsed, type Values, type Variables } from '@services/common/config/variables'
import { parseRate } from '../core/limits/rate.ts'
import { isHookEnabled } from './hooks/hook-variables.ts'

export const limitVariables = {
  RATE_LIMIT_HEADER: headerName(
    "Header with the client's address, set by the nearest proxy or by the CDN in front of it. Of a list the last entry is used, without its port.",
  ),
  SECURITY_SB_FORWARDED_FOR_ENABLED: boolean(
    'Take the client address from the first entry of `Sb-Forwarded-For`; safe only if a trusted proxy sets it.',
    { default: 'false' },
  ),
  RATE_LIMIT_EMAIL_SENT: parsed(
    'rate',
    'E-mails to all users per hour, or `N/duration`; a quarter is reserved for requests by account owners. Unset: 360 where a mail server sends them, no limit where the send-email hook does.',
    {},
    parseRate,
  ),
  RATE_LIMIT_SMS_SENT: parsed(
    'rate',
    'SMS to all numbers per hour, or `N/duration`; a quarter is reserved for requests by account owners.',
    { default: '360' },
    parseRate,
  ),
  RATE_LIMIT_TOKEN_REFRESH: integer(
    'Calls per address and 5 minutes, counted apart: POST /token; GET /authorize; /callback; /oauth/authorize, /logout and /device_authorization together; /oauth/par; failed authentication of OAuth clients, and requests of public or self-registered ones at /oauth/token, /introspect and /revoke.',
    { default: '150', min: 1 },
  ),
  RATE_LIMIT_VERIFY: integer('/verify calls per address and 5 minutes.', { default: '30', min: 1 }),
  RATE_LIMIT_OTP: integer('Sign-up, mail-sending and PUT /user calls per address and 5 minutes.', {
    default: '30',
    min: 1,
  }),
  RATE_LIMIT_ANONYMOUS_USERS: integer('Anonymous sign-ins per address and hour.', { default: '30', min: 1 }),
  RATE_LIMIT_WEB3: integer('Sign-ins with a wallet per address and 5 minutes.', { default: '30', min: 1 }),
  RATE_LIMIT_PASSKEY: integer(
    'Challenges for passkeys per address and 5 minutes; as many sign-ins and registrations, each counted apart.',
    { default: '30', min: 1 },
  ),
  RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER: integer(
    'Registrations of OAuth clients, also by unknown metadata documents, per address and 5 minutes, on average: three times as many in 15 minutes.',
    {
      default: '10',
      min: 1,
      aliases: ['AUTH_RATE_LIMIT_OAUTH_DYNAMIC_CLIENT_REGISTER', 'RATE_LIMIT_OAUTH_DYNAMIC_CLIENT_REGISTER'],
    },
  ),
  RATE_LIMIT_FAILED_SIGN_INS: integer(
    'Wrong passwords per account and client address without a wait; each further one doubles it, from 1 s to 15 min.',
    { default: '5', min: 1 },
  ),
} satisfies Variables

/** A provider of mail refuses or bills floods; a hook is the operator's own code, with limits of its own. */
const MAILS_PER_HOUR = { points: 360, seconds: 3600 }

export const limitSettings = (values: Values<typeof limitVariables>) => ({
  header: values.RATE_LIMIT_HEADER,
  /** undefined: no limit. */
  mailsSent: values.RATE_LIMIT_EMAIL_SENT ?? (isHookEnabled(values, 'send-email') ? undefined : MAILS_PER_HOUR),
  changesResent: values.RATE_LIMIT_EMAIL_SENT ?? MAILS_PER_HOUR,
  tokenPer5Minutes: values.RATE_LIMIT_TOKEN_REFRESH,
  verifyPer5Minutes: values.RATE_LIMIT_VERIFY,
  otpPer5Minutes: values.RATE_LIMIT_OTP,
  anonymousPerHour: values.RATE_LIMIT_ANONYMOUS_USERS,
  web3Per5Minutes: values.RATE_LIMIT_WEB3,
  passkeyPer5Minutes: values.RATE_LIMIT_PASSKEY,
  registrationsPer5Minutes: values.RATE_LIMIT_O_AUTH_DYNAMIC_CLIENT_REGISTER,
  freeWrongPasswords: values.RATE_LIMIT_FAILED_SIGN_INS,
})
