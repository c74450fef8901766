import { isMailKind, type MailKind } from './kinds.ts'
import type { MailTemplates, RenderedMail } from './mail-templates.ts'
import { SAMPLE_VARIABLES } from './sample-variables.ts'

/** A mail as it would leave, with made-up variables. */
export const previewMail = (templates: MailTemplates, kind: MailKind, locale?: string): Promise<RenderedMail> =>
  templates.render(kind, locale, SAMPLE_VARIABLES[kind])

/** The kind of that name, with `-` for `_` too. */
export function mailKindNamed(name: string): MailKind | undefined {
  const kind = name.toLowerCase().replaceAll('-', '_')
  return isMailKind(kind) ? kind : undefined
}
