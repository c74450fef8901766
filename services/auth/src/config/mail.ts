import {
  boolean,
  duration,
  integer,
  parseBoolean,
  parsed,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { isLocale } from '@services/common/pages/locale'
import { actionLink } from '../adapters/mail/action-link.ts'
import { parseAuthorizedAddresses } from '../adapters/mail/authorized-addresses.ts'
import { checkSubject } from '../adapters/mail/check-template.ts'
import {
  ALL_KINDS,
  LINK_TYPES,
  type LinkType,
  MAIL_KINDS,
  type MailKind,
  NOTIFICATION_KINDS,
  ON_BY_DEFAULT,
  settingName,
} from '../adapters/mail/kinds.ts'
import type { Template } from '../adapters/mail/template/template.ts'
import { parseTestAddresses } from '../adapters/mail/test-addresses.ts'
import { hasTestCodes, parseMoment } from '../adapters/test-codes.ts'
import { parseRates } from '../core/limits/rate.ts'
import { forEach } from './for-each.ts'
import { sendingSettings } from './hooks/hook-variables.ts'
import { CONFIRM_PATH } from './pages/page-paths.ts'
import type { smtpVariables } from './smtp.ts'

const NOTIFICATIONS = Object.keys(NOTIFICATION_KINDS) as (keyof typeof NOTIFICATION_KINDS)[]

const subjectVariable = (kind: string) => `MAILER_SUBJECTS_${settingName(kind)}`
const templateVariable = (kind: string) => `MAILER_TEMPLATES_${settingName(kind)}`
const switchVariable = (kind: string) =>
  `MAILER_NOTIFICATIONS_${settingName(kind).replace(/_NOTIFICATION$/, '')}_ENABLED`

const linkPath = (meaning: string) => parsed('string', meaning, { default: '/verify' }, parseLinkPath)

export const mailVariables = {
  EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES: parsed(
    'list',
    'Only addresses that get mail, with any `+label`; requests for others are refused. Unset: all.',
    {},
    parseAuthorizedAddresses,
  ),
  MAILER_SIGN_IN_LINK_MAX_FREQUENCY: duration('Minimum time between sign-in or recovery mails to one address.', {
    default: '60',
  }),
  // A code allows five guesses: 50 mails are 250 guesses a day at a million codes. Owners request far fewer; beyond the
  // cap codes are longer.
  MAILER_MAX_PER_ADDRESS: parsed(
    'rates',
    'Mails with a link or code to one mailbox; those requested by the account owner are counted apart. Beyond, sign-in mails have longer codes.',
    { default: '20/1h,50/24h' },
    parseRates,
  ),
  MAILER_SECURE_EMAIL_CHANGE_ENABLED: boolean('A change of address must be confirmed at the old and the new address.', {
    default: 'true',
  }),
  MAILER_ACCOUNT_EXISTS_ENABLED: boolean(
    'A sign-up with the address of an account, or a first sign-in at a provider that reports it unverified, sends a mail to its owner: sign in, or set a new password.',
    { default: 'true' },
  ),
  MAILER_AUTOCONFIRM: boolean(
    'E-mail addresses count as confirmed at sign-up; the first user who proves one takes over its account.',
    { default: 'false' },
  ),
  MAILER_OTP_EXP: duration('Validity of mail links and codes; it begins when the mail is sent.', {
    default: '3600',
    positive: true,
  }),
  MAILER_INVITE_EXP: duration('Validity of invitations.', { default: '168h', positive: true }),
  MAILER_OTP_LENGTH: integer('Digits of mailed codes.', { default: '6', min: 6, max: 10 }),
  MAILER_TEST_OTP: parsed(
    'list',
    'Addresses with a fixed code that get no mail: `address:code,address:code`.',
    { default: '', secret: true },
    parseTestAddresses,
  ),
  MAILER_TEST_OTP_VALID_UNTIL: parsed(
    'time',
    'End of the fixed codes, such as `2030-01-31T00:00:00Z`.',
    {},
    parseMoment,
  ),
  MAILER_TEST_OTP_IN_PRODUCTION: boolean(
    'Permits MAILER_TEST_OTP where NODE_ENV is `production`; the start is refused otherwise.',
    { default: 'false' },
  ),
  MAILER_LINK_CONFIRMATION_PAGE: parsed(
    'boolean or list',
    `Mail links open a page whose button confirms, so that a scanner that opens links confirms nothing: \`true\`, \`false\` or a list of ${LINK_TYPES.map((type) => `\`${type}\``).join(', ')}. List \`signup\` with \`invite\`, and \`recovery\` with \`magiclink\`: each redeems the other's links.`,
    { default: 'false' },
    parseConfirmationPage,
  ),
  MAILER_EXTERNAL_HOSTS: parsed(
    'list',
    'Further host names of this service; a mail link starts with the host of its request.',
    { default: '' },
    parseHosts,
  ),
  MAILER_URLPATHS_INVITE: linkPath('Path of invitation links.'),
  MAILER_URLPATHS_CONFIRMATION: linkPath('Path of confirmation links.'),
  MAILER_URLPATHS_RECOVERY: linkPath('Path of recovery and magic links.'),
  MAILER_URLPATHS_EMAIL_CHANGE: linkPath('Path of e-mail change links.'),
  MAILER_DEFAULT_LOCALE: parsed(
    'string',
    "Fallback language when the user's is unknown or not in MAILER_LOCALES.",
    { default: 'en' },
    parseLocale,
  ),
  MAILER_LOCALES: parsed(
    'list',
    'Languages of mails; all but `en` and `de` need custom templates.',
    { default: 'en,de' },
    parseLocales,
  ),
  MAILER_TEMPLATE_MAX_SIZE: integer('Maximum size of a template in bytes.', {
    default: '1000000',
    min: 1,
    max: 10_000_000,
  }),
  MAILER_TEMPLATE_MAX_AGE: duration('Age at which a template from a URL is loaded again.', { default: '10m' }),
  MAILER_TEMPLATE_RETRY_INTERVAL: duration('Minimum time between attempts to load a template that fails.', {
    default: '10s',
  }),
  MESSAGES_KEEP: duration('Retention of sent messages in `GET /admin/messages`; failed ones stay 30 days.', {
    default: '168h',
  }),
  ...forEach(ALL_KINDS, (kind) => ({
    [subjectVariable(kind)]: parsed(
      'template',
      `Subject of ${kind} mails, for all languages; unset: \`${MAIL_KINDS[kind].subject}\`, translated.`,
      {},
      (value) => checkSubject(value, kind),
    ),
    [templateVariable(kind)]: text(
      `HTML template of ${kind} mails: a URL, file, or path on the site; \`{locale}\` is the language.`,
    ),
  })),
  ...forEach(NOTIFICATIONS, (kind) => ({
    [switchVariable(kind)]: boolean(`Send ${kind} mails.`, { default: String(ON_BY_DEFAULT.includes(kind)) }),
  })),
} satisfies Variables

export function mailSettings(
  values: Values<typeof mailVariables & Pick<typeof smtpVariables, 'SMTP_MAX_FREQUENCY'>> & {
    HOSTED_PAGES_ENABLED: boolean
  },
) {
  const settings: Record<string, unknown> = values
  const settingsOf = (kinds: readonly string[], variableOf: (kind: string) => string) =>
    Object.fromEntries(kinds.map((kind) => [kind, settings[variableOf(kind)]]))
  return {
    /** `byHook`: the send-email hook sends instead of a mail server. */
    ...sendingSettings(values, 'send-email'),
    authorizedAddresses: values.EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES,
    accountExists: values.MAILER_ACCOUNT_EXISTS_ENABLED,
    autoconfirm: values.MAILER_AUTOCONFIRM,
    minGapSeconds: values.SMTP_MAX_FREQUENCY,
    signInLinkGapSeconds: values.MAILER_SIGN_IN_LINK_MAX_FREQUENCY,
    maxPerAddress: values.MAILER_MAX_PER_ADDRESS,
    secureEmailChange: values.MAILER_SECURE_EMAIL_CHANGE_ENABLED,
    codeLifetimeSeconds: values.MAILER_OTP_EXP,
    inviteLifetimeSeconds: values.MAILER_INVITE_EXP,
    codeLength: values.MAILER_OTP_LENGTH,
    testAddresses: { codes: values.MAILER_TEST_OTP, validUntil: values.MAILER_TEST_OTP_VALID_UNTIL },
    confirmationPageTypes: values.MAILER_LINK_CONFIRMATION_PAGE,
    linkPaths: {
      invite: values.MAILER_URLPATHS_INVITE,
      confirmation: values.MAILER_URLPATHS_CONFIRMATION,
      recovery: values.MAILER_URLPATHS_RECOVERY,
      email_change: values.MAILER_URLPATHS_EMAIL_CHANGE,
      /** Path of all links that lead back to the hosted pages; undefined while these are disabled. */
      pages: values.HOSTED_PAGES_ENABLED ? CONFIRM_PATH : undefined,
    },
    defaultLocale: values.MAILER_DEFAULT_LOCALE,
    locales: [...new Set([values.MAILER_DEFAULT_LOCALE, ...values.MAILER_LOCALES])],
    templateMaxBytes: values.MAILER_TEMPLATE_MAX_SIZE,
    templateMaxAgeSeconds: values.MAILER_TEMPLATE_MAX_AGE,
    templateRetrySeconds: values.MAILER_TEMPLATE_RETRY_INTERVAL,
    subjects: settingsOf(ALL_KINDS, subjectVariable) as Partial<Record<MailKind, Template>>,
    templates: settingsOf(ALL_KINDS, templateVariable) as Partial<Record<MailKind, string>>,
    notifications: settingsOf(NOTIFICATIONS, switchVariable) as Record<string, boolean>,
  }
}

type TestValues = Pick<
  Values<typeof mailVariables>,
  'MAILER_TEST_OTP' | 'MAILER_TEST_OTP_VALID_UNTIL' | 'MAILER_TEST_OTP_IN_PRODUCTION'
>

/** Fixed codes that were copied into production by mistake would open accounts. */
export function mailProblems(values: TestValues, nodeEnvironment: string | undefined, now: Date): string[] {
  const isPermitted = nodeEnvironment?.trim().toLowerCase() !== 'production' || values.MAILER_TEST_OTP_IN_PRODUCTION
  const testAddresses = { codes: values.MAILER_TEST_OTP, validUntil: values.MAILER_TEST_OTP_VALID_UNTIL }
  if (isPermitted || !hasTestCodes(testAddresses, now)) return []
  return [
    'AUTH_MAILER_TEST_OTP lets e-mail addresses sign in with a fixed code, and NODE_ENV is production: remove it, or set AUTH_MAILER_TEST_OTP_IN_PRODUCTION=true',
  ]
}

/** Fixed codes are fit for tests only. */
export function mailWarnings(
  { MAILER_TEST_OTP: codes, MAILER_TEST_OTP_VALID_UNTIL: end }: TestValues,
  now: Date,
): string[] {
  if (!hasTestCodes({ codes, validUntil: end }, now)) return []
  const until = end ? `until ${end.toISOString()}` : 'without an end (AUTH_MAILER_TEST_OTP_VALID_UNTIL)'
  return [`AUTH_MAILER_TEST_OTP lets ${codes.size} e-mail address(es) sign in with a fixed code, ${until}`]
}

function parseConfirmationPage(value: string): readonly LinkType[] {
  const everyType = parseBoolean(value)
  if (everyType !== undefined) return everyType ? LINK_TYPES : []
  const types = value.split(',').map((type) => type.trim().toLowerCase())
  const isLinkType = (type: string): type is LinkType => LINK_TYPES.some((known) => known === type)
  if (types.every(isLinkType)) return types
  throw new Error(`must be true, false or a list of ${LINK_TYPES.join(', ')}`)
}

/** Checks a path or an absolute URL by building a link with it. */
function parseLinkPath(value: string): string {
  try {
    actionLink('https://h.example', value, { token: '', type: '', redirectTo: '' })
    return value
  } catch {
    throw new Error('must be a path or an absolute http or https URL')
  }
}

function parseHosts(value: string): string[] {
  const hosts = value
    .split(',')
    .map((host) => host.trim().toLowerCase())
    .filter(Boolean)
  if (!hosts.every((host) => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host))) {
    throw new Error('must be a list of host names without scheme, port and path')
  }
  return hosts
}

function parseLocale(value: string): string {
  const locale = value.trim().toLowerCase()
  if (!isLocale(locale)) throw new Error('must be a language tag such as en or pt-br')
  return locale
}

function parseLocales(value: string): string[] {
  const locales = value.split(',').filter((part) => part.trim() !== '')
  if (locales.length > 100) throw new Error('must not have more than 100 languages')
  return locales.map(parseLocale)
}
