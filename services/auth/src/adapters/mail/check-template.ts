import { type MailKind, neededFields } from './kinds.ts'
import { SAMPLE_VARIABLES } from './sample-variables.ts'
import { compileTemplate, renderTemplate, type Template } from './template/template.ts'
import { TemplateError } from './template/template-error.ts'

/**
 * Compiles a custom body and renders it with sample variables. Throws a TemplateError, even for a body with neither
 * link nor code: most likely the page that a site shows for any address.
 */
export function checkBody(source: string, kind: MailKind): Template {
  const template = compileTemplate(source, 'html')
  const needed = neededFields(kind)
  if (needed.length > 0 && !needed.some((name) => template.fields.has(name))) {
    throw new TemplateError(`expected one of ${needed.map((name) => `{{ .${name} }}`).join(', ')} somewhere`)
  }
  renderTemplate(template, { ...SAMPLE_VARIABLES[kind] })
  return template
}

/** Compiles a custom subject and renders it with sample variables. */
export function checkSubject(source: string, kind: MailKind): Template {
  const template = compileTemplate(source, 'text')
  renderTemplate(template, { ...SAMPLE_VARIABLES[kind] })
  return template
}
