// Renders mails: the custom template where there is one, else the built-in one. A template that cannot be loaded or
// rendered never delays a mail. Built-in words: built-in/; syntax: template/.
import type { Logger } from '@services/common/telemetry/logger'
import type { Config } from '../../config.ts'
import { templateFailures } from '../../metrics.ts'
import { builtInMail } from './built-in/layout.ts'
import type { Words } from './built-in/mail-words.ts'
import { WORDS } from './built-in/words.ts'
import { shownEmail } from './email-address.ts'
import { htmlToText } from './html-to-text.ts'
import type { MailKind } from './kinds.ts'
import { createRemoteTemplates } from './remote-templates.ts'
import { compileTemplate, LINK_SCHEMES, renderTemplate } from './template/template.ts'
import type { TemplateVariables } from './template/values.ts'
import { openTemplateSources } from './template-sources.ts'

export type MailTemplates = ReturnType<typeof openMailTemplates>

/** Time that mails wait for the load of a template from a URL; twice that where the default language stands in. */
export const TEMPLATE_WAIT_MS = 2_000

interface TemplateDeps {
  config: Pick<Config, 'siteUrl' | 'mail'>
  now: () => Date
  log: Logger
}

export function openMailTemplates({ config, now, log }: TemplateDeps, mailWaitsMs = TEMPLATE_WAIT_MS) {
  const { mail } = config
  const sources = openTemplateSources(config)
  const failures = templateFailures()
  const failed = (kind: MailKind, locale: string, reason: string) => {
    failures.add(1, { kind, locale })
    log.error({ kind, locale, reason }, 'mail template unusable: sending the last good or the built-in one')
  }
  const remoteBody = createRemoteTemplates({ urls: sources.urls, config: mail, now, mailWaitsMs, failed })
  const builtInTemplates = compileBuiltIns(mail.defaultLocale)

  const ownBody = async (kind: MailKind, locale: string) =>
    sources.file(kind, locale) ?? (await remoteBody(kind, locale)) ?? remoteBody(kind, mail.defaultLocale)

  return {
    /** Renders in the language, or in the default one where the settings lack it. */
    async render(kind: MailKind, wanted: string | undefined, variables: object) {
      const locale = wanted && mail.locales.includes(wanted) ? wanted : mail.defaultLocale
      const builtIn = builtInTemplates(kind, locale)
      const values = { ...variables, ...shownAddresses(variables) } as TemplateVariables
      const schemes = schemesOf(config.siteUrl, values)
      const subject = mail.subjects[kind]
      const html = await ownBody(kind, locale)
      const tryOwn = <Result>(render: () => Result): Result | undefined => {
        try {
          return render()
        } catch (error) {
          failed(kind, locale, (error as Error).message)
          return undefined
        }
      }
      const ownSubject = subject && tryOwn(() => renderTemplate(subject, values))
      const ownHtml = html && tryOwn(() => renderTemplate(html, values, schemes))
      return {
        subject: oneLine(ownSubject ?? renderTemplate(builtIn.subject, values)),
        html: ownHtml ?? renderTemplate(builtIn.html, values, schemes),
        text: ownHtml === undefined ? renderTemplate(builtIn.text, values) : htmlToText(ownHtml),
        language: locale,
        /** Whether the body is the operator's. */
        isOwn: ownHtml !== undefined,
      }
    },
    /** Source of the body of a kind. */
    sourceOf: (kind: MailKind) => sources.origins[kind] ?? ('built_in' as const),
    /** Loads the bodies behind URLs at start: the first mail does not wait, and a mistake shows early. */
    async loadRemote(): Promise<void> {
      for (const [kind, from] of Object.entries(sources.origins)) log.info({ kind, from }, 'custom mail template')
      await Promise.all([...sources.urls.keys()].map((kind) => remoteBody(kind, mail.defaultLocale)))
    },
  }
}

const ADDRESSES = ['Email', 'NewEmail', 'OldEmail', 'SendingTo']

const shownAddresses = (variables: object) =>
  Object.fromEntries(
    Object.entries(variables)
      .filter(([name]) => ADDRESSES.includes(name))
      .map(([name, address]) => [name, shownEmail(String(address ?? ''))]),
  )

/** Compiles at first use. Languages without built-in words use those of the default, then English. */
function compileBuiltIns(defaultLocale: string) {
  const compiled = new Map<string, ReturnType<typeof compileBuiltIn>>()
  return (kind: MailKind, locale: string) => {
    const language = [locale, locale.split('-')[0] as string, defaultLocale].find((tag) => WORDS[tag]) ?? 'en'
    const key = `${kind} ${language}`
    const builtIn = compiled.get(key) ?? compileBuiltIn(kind, language)
    compiled.set(key, builtIn)
    return builtIn
  }
}

function compileBuiltIn(kind: MailKind, language: string) {
  const words = WORDS[language] as Words
  const { subject, html, text } = builtInMail(language, words.mails[kind], words)
  return {
    subject: compileTemplate(subject, 'text'),
    html: compileTemplate(html, 'html'),
    text: compileTemplate(text, 'text'),
  }
}

/** Usual schemes and those of the site and the permitted target: apps have their own (`myapp://`). */
function schemesOf(siteUrl: string, { RedirectTo }: TemplateVariables): ReadonlySet<string> {
  const urls = [siteUrl, RedirectTo].filter((url) => typeof url === 'string' && URL.canParse(url)) as string[]
  return new Set([...LINK_SCHEMES, ...urls.map((url) => new URL(url).protocol.slice(0, -1))])
}

/** Longest subject; metadata in it may have kilobytes. */
const MAX_SUBJECT_LENGTH = 250

/** Collapses all blanks: a line break in a subject would inject headers. */
export function oneLine(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return line.length > MAX_SUBJECT_LENGTH ? `${line.slice(0, MAX_SUBJECT_LENGTH).toWellFormed()}…` : line
}
