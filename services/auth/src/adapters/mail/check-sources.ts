import type { Config } from '../../config.ts'
import { ALL_KINDS, settingName } from './kinds.ts'
import { createRemoteTemplates, UNREACHABLE } from './remote-templates.ts'
import { forLocale, openTemplateSources } from './template-sources.ts'
import { unknownInBody } from './unknown-variables.ts'

/**
 * Loads each custom template once, in every language. Problems are those that a mail would meet; a server that cannot
 * be reached from here is a warning. Throws the ConfigError of unusable files.
 */
export async function checkTemplateSources(config: Pick<Config, 'siteUrl' | 'mail'>) {
  const { mail } = config
  const sources = openTemplateSources(config)
  const problems: string[] = []
  const warnings: string[] = []
  const unreachable = new Set<string>()
  const nameOf = (kind: string) => `AUTH_MAILER_TEMPLATES_${settingName(kind)}`
  const load = createRemoteTemplates({
    urls: sources.urls,
    config: mail,
    now: () => new Date(),
    failed: (kind, locale, reason) => {
      const setting = mail.templates[kind] ?? ''
      const isPath = !/^https?:\/\//i.test(setting)
      const language = forLocale(setting, locale) === setting ? '' : ` in the language ${locale}`
      const what = isPath ? 'is no file, and as a path of the site it cannot be used' : 'cannot be used'
      const isUnreachable = UNREACHABLE.test(reason) && !isPath
      if (isUnreachable) unreachable.add(kind)
      const into = isUnreachable ? warnings : problems
      into.push(`${nameOf(kind)} ${what}${language}: ${reason}`)
    },
  })
  await Promise.all(
    ALL_KINDS.map(async (kind) => {
      for (const locale of mail.locales) {
        const body = sources.file(kind, locale) ?? (await load(kind, locale))
        if (body) problems.push(...unknownInBody(body).map((fault) => `${nameOf(kind)} ${fault}`))
        if (unreachable.has(kind)) break
      }
    }),
  )
  return { problems: [...new Set(problems)], warnings }
}
