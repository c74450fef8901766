/** Gateways split 1,600 characters into ten messages and refuse longer texts. */
const MAX_TEMPLATE_CHARACTERS = 1_500

const PLACEHOLDER = /\{\{-?\s*\.([A-Za-z]+)\s*-?\}\}/g

/** Fills in `{{ .Name }}`; names are checked at start. */
export function fillIn(
  template: string,
  variables: Record<string, string>,
  escapeValue: (value: string) => string = (value) => value,
): string {
  return template.replaceAll(PLACEHOLDER, (_match, name: string) => escapeValue(variables[name] ?? ''))
}

/** Names of a template. Throws an Error for an unknown name, and for braces that are not a placeholder. */
export function variablesOf(template: string, known: readonly string[]): Set<string> {
  const names = new Set([...template.matchAll(PLACEHOLDER)].map(([, name]) => name as string))
  const isKnown = [...names].every((name) => known.includes(name))
  if (!isKnown || template.replaceAll(PLACEHOLDER, '').includes('{{')) {
    throw new Error(`may hold ${known.map((name) => `{{ .${name} }}`).join(', ')} and no other placeholder`)
  }
  return names
}

/** Checks SMS_TEMPLATE: a text without the code is useless. */
export function parseSmsTemplate(template: string): string {
  if (!variablesOf(template, ['Code']).has('Code')) throw new Error('must contain {{ .Code }}')
  if (template.length > MAX_TEMPLATE_CHARACTERS)
    throw new Error(`must be at most ${MAX_TEMPLATE_CHARACTERS} characters`)
  return template
}

export const smsText = (template: string, code: string): string => fillIn(template, { Code: code })
