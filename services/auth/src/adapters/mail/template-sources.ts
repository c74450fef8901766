import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError } from '@services/common/config/variables'
import type { Config } from '../../config.ts'
import { checkBody } from './check-template.ts'
import { ALL_KINDS, type MailKind, settingName } from './kinds.ts'
import type { Template } from './template/template.ts'

type SourceConfig = Pick<Config, 'siteUrl' | 'mail'>

/** Resolves MAILER_TEMPLATES_* and reads the files. Throws one ConfigError that lists all unusable ones. */
export function openTemplateSources(config: SourceConfig) {
  const problems: string[] = []
  const urls = new Map<MailKind, string>()
  const files = new Map<string, Template>()
  const origins: Record<string, 'file' | 'url'> = {}
  for (const kind of ALL_KINDS) {
    const setting = config.mail.templates[kind]
    if (!setting) continue
    try {
      const { from, at } = sourceOf(setting, config)
      origins[kind] = from
      if (from === 'url') urls.set(kind, at)
      else readFiles(at, kind, config, files)
    } catch (error) {
      problems.push(`AUTH_MAILER_TEMPLATES_${settingName(kind)} ${(error as Error).message}`)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  const { defaultLocale } = config.mail
  return {
    urls,
    origins,
    /** Body read from a file, in the default language if the language has none. */
    file: (kind: MailKind, locale: string) => files.get(keyOf(kind, locale)) ?? files.get(keyOf(kind, defaultLocale)),
  }
}

export const forLocale = (setting: string, locale: string) => setting.replaceAll('{locale}', locale)

const keyOf = (kind: MailKind, locale: string) => `${kind} ${locale}`

/** Finds the source: a URL, else an existing file, else a path on the site (contract/auth-platform.md 5.5). */
function sourceOf(setting: string, { siteUrl, mail }: SourceConfig): { from: 'file' | 'url'; at: string } {
  if (/^https?:\/\//i.test(setting)) {
    if (!URL.canParse(setting)) throw new Error('is not a valid URL')
    const { username, password } = new URL(setting)
    if (username || password) throw new Error('must have no user name and password')
    return { from: 'url', at: setting }
  }
  if (isFile(resolve(forLocale(setting, mail.defaultLocale)))) return { from: 'file', at: resolve(setting) }
  if (!/^https?:\/\//i.test(siteUrl)) throw new Error('is not a file, and AUTH_SITE_URL is not an http URL')
  return { from: 'url', at: `${siteUrl.replace(/\/+$/, '')}/${setting.replace(/^\/+/, '')}` }
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

function readFiles(path: string, kind: MailKind, { mail }: SourceConfig, into: Map<string, Template>): void {
  const locales = path.includes('{locale}') ? mail.locales : [mail.defaultLocale]
  for (const locale of locales) {
    const file = forLocale(path, locale)
    if (!isFile(file)) continue
    try {
      into.set(keyOf(kind, locale), checkBody(readBounded(file, mail.templateMaxBytes), kind))
    } catch (error) {
      throw new Error(`(${locale}): ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`)
    }
  }
}

function readBounded(file: string, maxBytes: number): string {
  if (statSync(file).size > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
  return readFileSync(file, 'utf8')
}
