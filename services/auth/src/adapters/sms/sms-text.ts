/** A message of 1,600 characters is split into ten; gateways refuse longer ones. */
const MAX_TEMPLATE_CHARACTERS = 1_500

const PLACEHOLDER = /\{\{-?\s*\.([A-Za-z]+)\s*-?\}\}/g

/** Fills in `{{ .Name }}`; templates are checked at start, so every name is known. */
export function fillIn(
  template: string,
  variables: Record<string, string>,
  escapeValue: (value: string) => string = (value) => value,
): string {
  return template.replaceAll(PLACEHOLDER, (_match, name: string) => escapeValue(variables[name] ?? ''))
}

/** The names a template uses. Throws an Error for braces that are no placeholder and for names not in `known`. */
export function variablesOf(template: string, known: readonly string[]): Set<string> {
  const names = new Set([...template.matchAll(PLACEHOLDER)].map(([, name]) => name as string))
  const isKnown = [...names].every((name) => known.includes(name))
  if (!isKnown || template.replaceAll(PLACEHOLDER, '').includes('{{')) {
    throw new Error(`may hold ${known.map((name) => `{{ .${name} }}`).join(', ')} and no other placeholder`)
  }
  return names
}

/** SMS_TEMPLATE, as it is written; a text without its code helps nobody. */
export function parseSmsTemplate(template: string): string {
  if (!variablesOf(template, ['Code']).has('Code')) throw new Error('must contain {{ .Code }}')
  if (template.length > MAX_TEMPLATE_CHARACTERS)
    throw new Error(`must be at most ${MAX_TEMPLATE_CHARACTERS} characters`)
  return template
}

export const smsText = (template: string, code: string): string => fillIn(template, { Code: code })
