import { isMailKind, type MailKind } from '../../adapters/mail/kinds.ts'
import type { MailTemplates, RenderedMail } from '../../adapters/mail/mail-templates.ts'
import { SAMPLE_VARIABLES } from '../../adapters/mail/sample-variables.ts'

/** Renders a mail with sample variables. */
export const previewMail = (templates: MailTemplates, kind: MailKind, locale?: string): Promise<RenderedMail> =>
  templates.render(kind, locale, SAMPLE_VARIABLES[kind])

/** Finds the kind of that name, written with `-` or `_`. */
export function mailKindNamed(name: string): MailKind | undefined {
  const kind = name.toLowerCase().replaceAll('-', '_')
  return isMailKind(kind) ? kind : undefined
}
