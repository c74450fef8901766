/** Markup that needs no escaping any more. Only `html` makes it. */
export type Html = { readonly markup: string }

/** Escapes every value put into the template, except what `html` itself made and lists of that. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  const parts = values.map((value, index) => toMarkup(value) + strings[index + 1])
  return { markup: strings[0] + parts.join('') }
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function toMarkup(value: string | number | Html | Html[]): string {
  if (Array.isArray(value)) return value.map((part) => part.markup).join('')
  if (typeof value === 'object') return value.markup
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
