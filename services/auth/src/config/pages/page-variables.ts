// Variables of the pages that this service serves to people (contract/auth-pages.md).
import { existsSync } from 'node:fs'
import { boolean, parsed, text, type Values, type Variables } from '@services/common/config/variables'
import { assetType } from '@services/common/pages/assets'
import { type Glob, parseAllowList } from '../../core/redirects/allow-list-patterns.ts'
import { LANGUAGES, type Language } from '../../words/language.ts'
import type { captchaVariables } from '../captcha.ts'
import { EXTERNAL_PROVIDERS } from '../external-providers.ts'
import type { mailVariables } from '../mail.ts'
import { ARRIVAL_PATH } from './page-paths.ts'

/** Ways to sign in that are no provider. */
export const OWN_WAYS = ['password', 'code', 'link', 'passkey'] as const

export const pageVariables = {
  HOSTED_PAGES_ENABLED: boolean('Pages for users below `/ui`: sign-in, sign-up, recovery, account.', {
    default: 'false',
  }),
  HOSTED_PAGES_WAYS: parsed(
    'list',
    'Ways to sign in on these pages: `password`, `code`, `link`, `passkey` and names of providers. Unset: all that are enabled.',
    {},
    parseWays,
  ),
  PAGES_NAME: text('Name of the site on pages; unset: the host of SITE_URL.'),
  PAGES_LOGO: parsed(
    'file or URL',
    'Logo of pages: the path of an SVG, PNG, JPEG or WebP file, or an https URL, which is loaded and served from here.',
    {},
    parseLogo,
  ),
  PAGES_COLOR: parsed(
    'color',
    'Color of buttons and links on pages, such as `#1d5fd6`; adjusted where its text would be hard to read.',
    { default: '#1d5fd6' },
    parseColor,
  ),
  PAGES_SUPPORT_URL: parsed('URL', 'Target of the link to help on pages: https, http or mailto.', {}, parseSupport),
  PAGES_LANGUAGES: parsed(
    'list',
    `Languages of pages, of ${LANGUAGES.map((language) => `\`${language}\``).join(' and ')}; the first is the fallback. Unset: those of MAILER_LOCALES.`,
    {},
    parseLanguages,
  ),
} satisfies Variables

type PageValues = Values<typeof pageVariables>
type LocaleValues = Pick<Values<typeof mailVariables>, 'MAILER_DEFAULT_LOCALE' | 'MAILER_LOCALES'>

export const pageSettings = (values: PageValues & LocaleValues & { SITE_URL: string }) => ({
  enabled: values.HOSTED_PAGES_ENABLED,
  /** undefined: all enabled ones. */
  ways: values.HOSTED_PAGES_WAYS,
  name: values.PAGES_NAME ?? (new URL(values.SITE_URL).host || values.SITE_URL),
  logo: values.PAGES_LOGO,
  color: values.PAGES_COLOR,
  supportUrl: values.PAGES_SUPPORT_URL,
  languages: values.PAGES_LANGUAGES ?? languagesOfMails(values),
})

/** Returns the redirect targets of our own pages, at all public hosts. */
export function arrivalTargets(
  values: PageValues & { API_EXTERNAL_URL: string; MAILER_EXTERNAL_HOSTS: readonly string[] },
): Glob[] {
  if (!values.HOSTED_PAGES_ENABLED) return []
  const hosts = values.MAILER_EXTERNAL_HOSTS.map((host) => `https://${host}`)
  return [values.API_EXTERNAL_URL, ...hosts].flatMap((base) => parseAllowList(`${base}${ARRIVAL_PATH}[?]**`))
}

/** The fallback first; English where the mails have no language of the pages. */
function languagesOfMails({ MAILER_DEFAULT_LOCALE: first, MAILER_LOCALES: others }: LocaleValues): Language[] {
  const known = [first, ...others].filter((locale): locale is Language => LANGUAGES.some((each) => each === locale))
  return known.length > 0 ? [...new Set(known)] : ['en']
}

export const pageWarnings = (
  values: PageValues & Pick<Values<typeof captchaVariables>, 'SECURITY_CAPTCHA_ENABLED'>,
): string[] =>
  values.HOSTED_PAGES_ENABLED && values.SECURITY_CAPTCHA_ENABLED
    ? [
        'AUTH_HOSTED_PAGES_ENABLED shows no captcha, because its pages load nothing from other hosts: while AUTH_SECURITY_CAPTCHA_ENABLED is true, passwords and requests for mails are refused there',
      ]
    : []

/** Refuses providers that no setting enables: a misspelt one would silently be missing on the page. */
export function pageProblems(values: PageValues, ownProviders: readonly string[]): string[] {
  const settings = values as unknown as Record<string, unknown>
  const isEnabled = (name: string) =>
    EXTERNAL_PROVIDERS.some((known) => known === name)
      ? settings[`EXTERNAL_${name.toUpperCase()}_ENABLED`] === true
      : ownProviders.includes(name) || name.startsWith('custom:')
  const isKnown = (way: string) => OWN_WAYS.some((own) => own === way) || isEnabled(way)
  return (values.HOSTED_PAGES_WAYS ?? []).flatMap((way, index) =>
    isKnown(way) ? [] : [`AUTH_HOSTED_PAGES_WAYS has a name that is no enabled provider: number ${index + 1}`],
  )
}

function parseWays(value: string): string[] {
  const ways = value
    .split(',')
    .map((way) => way.trim().toLowerCase())
    .filter(Boolean)
  if (ways.length === 0) throw new Error('must list a way to sign in')
  if (!ways.every((way) => /^[a-z0-9_:-]{1,60}$/.test(way))) throw new Error('must be a list of names')
  return [...new Set(ways)]
}

function parseLogo(value: string): string {
  if (/^https:\/\//i.test(value)) {
    if (!URL.canParse(value)) throw new Error('must be an https URL or a file')
    return value
  }
  if (!/\.(svg|png|jpe?g|webp)$/i.test(value) || assetType(value) === undefined) {
    throw new Error('must be an https URL or the path of an SVG, PNG, JPEG or WebP file')
  }
  if (!existsSync(value)) throw new Error('names a file that does not exist')
  return value
}

function parseColor(value: string): string {
  const [, short, long] = /^#(?:([0-9a-f]{3})|([0-9a-f]{6}))$/i.exec(value.trim()) ?? []
  if (short) return `#${[...short].map((digit) => digit + digit).join('')}`.toLowerCase()
  if (!long) throw new Error('must be a color such as #1d5fd6')
  return `#${long}`.toLowerCase()
}

function parseSupport(value: string): string {
  const isUsable = /^(https?:\/\/[^\s]+|mailto:[^\s@]+@[^\s@]+)$/i.test(value) && URL.canParse(value)
  if (!isUsable) throw new Error('must be an http, https or mailto URL')
  return value
}

function parseLanguages(value: string): Language[] {
  const given = value
    .split(',')
    .map((language) => language.trim().toLowerCase())
    .filter(Boolean)
  const isLanguage = (text: string): text is Language => LANGUAGES.some((known) => known === text)
  if (given.length === 0 || !given.every(isLanguage)) throw new Error(`must be a list of ${LANGUAGES.join(', ')}`)
  return [...new Set(given)]
}
