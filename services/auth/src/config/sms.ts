import { boolean, duration, integer, parsed, type Values, type Variables } from '@services/common/config/variables'
import { parseCountries } from '../adapters/sms/countries.ts'
import { parseSmsTemplate } from '../adapters/sms/sms-text.ts'
import { parseTestNumbers } from '../adapters/sms/test-numbers.ts'
import { hasTestCodes, parseMoment } from '../adapters/test-codes.ts'
import { parseRate, parseRates } from '../core/limits/rate.ts'
import { sendingSettings } from './hooks/hook-variables.ts'
import type { limitVariables } from './limits.ts'

export const smsTemplate = (meaning: string) =>
  parsed('template', meaning, { default: 'Your code is {{ .Code }}' }, parseSmsTemplate)

export const smsVariables = {
  SMS_ACCOUNT_EXISTS_ENABLED: boolean(
    'A sign-up with the number of an account sends an SMS to its owner: that the account exists. It has a text and no code, so the gateway must send `{{ .Text }}` and use no content template.',
    { default: 'false' },
  ),
  SMS_AUTOCONFIRM: boolean(
    'Phone numbers count as confirmed at sign-up; the first user who proves one takes over its account.',
    {
      default: 'false',
    },
  ),
  SMS_MAX_FREQUENCY: duration('Minimum time between codes to one number.', { default: '60' }),
  SMS_OTP_EXP: duration('Validity of SMS codes.', { default: '600', positive: true }),
  SMS_OTP_LENGTH: integer('Digits of SMS codes.', { default: '6', min: 6, max: 10 }),
  SMS_TEMPLATE: smsTemplate('Text of SMS; `{{ .Code }}` is the code.'),
  SMS_TEST_OTP: parsed(
    'list',
    'Numbers with a fixed code that get no messages: `phone:code,phone:code`.',
    { default: '', secret: true },
    parseTestNumbers,
  ),
  SMS_TEST_OTP_VALID_UNTIL: parsed('time', 'End of the fixed codes, such as `2030-01-31T00:00:00Z`.', {}, parseMoment),
  SMS_COUNTRIES: parsed(
    'list',
    'Calling codes that get SMS, such as `+49,+1,!+1876`; `!` excludes, and the longest match decides. Empty: all.',
    { default: '' },
    parseCountries,
  ),
  SMS_MAX_PER_NUMBER: parsed(
    'rates',
    'SMS to one number from all requests; those by account owners are counted apart.',
    { default: '5/1h,10/24h' },
    parseRates,
  ),
  SMS_MAX_PER_PREFIX: parsed(
    'rate',
    'SMS per hour, or `N/duration`, to numbers that differ only in the last four digits.',
    { default: '20' },
    parseRate,
  ),
  SMS_DAILY_BUDGET: integer('Maximum SMS to all numbers in 24 hours; unset: no limit.', {}),
} satisfies Variables

export const smsSettings = (
  values: Values<typeof smsVariables & Pick<typeof limitVariables, 'RATE_LIMIT_SMS_SENT'>>,
) => ({
  /** `byHook`: the send-sms hook sends instead of a gateway. */
  ...sendingSettings(values, 'send-sms'),
  accountExists: values.SMS_ACCOUNT_EXISTS_ENABLED,
  autoconfirm: values.SMS_AUTOCONFIRM,
  minGapSeconds: values.SMS_MAX_FREQUENCY,
  codeLifetimeSeconds: values.SMS_OTP_EXP,
  codeLength: values.SMS_OTP_LENGTH,
  template: values.SMS_TEMPLATE,
  testNumbers: { codes: values.SMS_TEST_OTP, validUntil: values.SMS_TEST_OTP_VALID_UNTIL },
  guards: {
    countries: values.SMS_COUNTRIES,
    maxPerNumber: values.SMS_MAX_PER_NUMBER,
    maxPerPrefix: values.SMS_MAX_PER_PREFIX,
    dailyBudget: values.SMS_DAILY_BUDGET,
    sent: values.RATE_LIMIT_SMS_SENT,
  },
})

/** Fixed codes are fit for tests only. */
export function smsWarnings(
  { SMS_TEST_OTP: codes, SMS_TEST_OTP_VALID_UNTIL: end }: Values<typeof smsVariables>,
  now: Date,
): string[] {
  if (!hasTestCodes({ codes, validUntil: end }, now)) return []
  const until = end ? `until ${end.toISOString()}` : 'without an end (AUTH_SMS_TEST_OTP_VALID_UNTIL)'
  return [`AUTH_SMS_TEST_OTP lets ${codes.size} phone number(s) sign in with a fixed code, ${until}`]
}
