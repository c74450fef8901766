/** Variables of a mail; nested ones are reached as `{{ .Data.name }}`. */
export type TemplateVariables = Record<string, unknown>

/**
 * Fills in `{{ .Name }}`, the syntax existing templates are written in. An unknown variable becomes empty text, never an
 * error. `escapeText` fits the context: HTML for bodies, nothing for subjects and plain text.
 */
export function renderTemplate(
  template: string,
  variables: TemplateVariables,
  escapeText: (text: string) => string,
): string {
  return template.replaceAll(/\{\{-?\s*\.([A-Za-z0-9_.]+)\s*-?\}\}/g, (_match, path: string) =>
    escapeText(toText(lookUp(variables, path))),
  )
}

function lookUp(variables: TemplateVariables, path: string): unknown {
  let value: unknown = variables
  for (const key of path.split('.')) {
    const isObject = typeof value === 'object' && value !== null
    value = isObject && Object.hasOwn(value as object, key) ? (value as TemplateVariables)[key] : undefined
  }
  return value
}

const toText = (value: unknown) => (value === undefined || value === null ? '' : String(value))

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string)

/** Header injection: a subject is one line. */
export const singleLine = (text: string): string => text.replaceAll(/[\r\n]+/g, ' ')
