// Parts of forms. A field ties its label, hint and error together for screen readers; names are unique on a page.
import { escapeHtml, type Html, html, raw } from '../html.ts'

type AttributeValue = string | number | boolean | undefined

/** Attributes with a leading space each; `true` has no value, `false` and undefined are left out. */
const attributes = (values: Record<string, AttributeValue>): Html =>
  raw(
    Object.entries(values)
      .filter(([, value]) => value !== undefined && value !== false)
      .map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`))
      .join(''),
  )

export interface Field {
  name: string
  /** Name within the page, where several forms of it have a field of this name. */
  id?: string
  label: string
  type?: 'text' | 'email' | 'tel' | 'password'
  value?: string | undefined
  hint?: string | undefined
  /** Reason why the value was refused. */
  error?: string | undefined
  autocomplete?: string
  inputmode?: 'numeric' | 'email'
  maxlength?: number
  required?: boolean
  readonly?: boolean
  /** Whether the field has the focus at first; one of a page may. */
  autofocus?: boolean
}

export const field = ({ name, label, hint, error, type = 'text', id: given, ...more }: Field): Html => {
  const id = `field-${given ?? name}`
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  const own = attributes({
    ...{ id, name, type, ...more },
    'aria-describedby': describedBy || undefined,
    'aria-invalid': error ? 'true' : undefined,
    ...(type !== 'password' && { autocapitalize: 'none', spellcheck: 'false' }),
  })
  return html`<div class="field">
<label for="${id}">${label}</label>
${hint && html`<p class="hint" id="${id}-hint">${hint}</p>\n`}<input${own}>
${error && html`<p class="error" id="${id}-error">${error}</p>\n`}</div>
`
}

export interface Choice {
  name: string
  label: string
  hint?: string | undefined
}

export const checkbox = ({ name, label, hint }: Choice): Html => {
  const id = `field-${name}`
  const own = attributes({ id, name, value: 'yes', 'aria-describedby': hint && `${id}-hint` })
  return html`<div class="field">
<label class="check"><input type="checkbox"${own}><span>${label}</span></label>
${hint && html`<p class="hint" id="${id}-hint">${hint}</p>\n`}</div>
`
}

export interface Button {
  label: string
  kind?: 'primary' | 'quiet' | 'danger'
  /** Field that identifies the button within its form. */
  name?: string
  value?: string
}

export const button = ({ label, kind = 'primary', name, value }: Button): Html =>
  html`<button type="submit"${attributes({ class: kind, name, value })}>${label}</button>\n`

export const hiddenFields = (values: Readonly<Record<string, string | undefined>>): Html[] =>
  Object.entries(values).map(([name, value]) =>
    value === undefined ? html`` : html`<input type="hidden" name="${name}" value="${value}">\n`,
  )
