import type { Config } from '../../config.ts'
import { ALL_KINDS, settingName } from './kinds.ts'
import { createRemoteTemplates, UNREACHABLE } from './remote-templates.ts'
import { openTemplateSources } from './template-sources.ts'
import { unknownInBody } from './unknown-variables.ts'

/**
 * Loads each custom template once. Problems are those that a mail would meet; a server that cannot be reached from here
 * is a warning. Throws the ConfigError of unusable files.
 */
export async function checkTemplateSources(config: Pick<Config, 'siteUrl' | 'mail'>) {
  const { mail } = config
  const sources = openTemplateSources(config)
  const problems: string[] = []
  const warnings: string[] = []
  const nameOf = (kind: string) => `AUTH_MAILER_TEMPLATES_${settingName(kind)}`
  const load = createRemoteTemplates({
    urls: sources.urls,
    config: mail,
    now: () => new Date(),
    failed: (kind, _locale, reason) => {
      const isPath = !/^https?:\/\//i.test(mail.templates[kind] ?? '')
      const what = isPath ? 'is no file, and as a path of the site it cannot be used' : 'cannot be used'
      const into = UNREACHABLE.test(reason) && !isPath ? warnings : problems
      into.push(`${nameOf(kind)} ${what}: ${reason}`)
    },
  })
  for (const kind of ALL_KINDS) {
    const body = sources.file(kind, mail.defaultLocale) ?? (await load(kind, mail.defaultLocale))
    if (body) problems.push(...unknownInBody(body).map((fault) => `${nameOf(kind)} ${fault}`))
  }
  return { problems, warnings }
}
