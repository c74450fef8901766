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

type Around = Pick<Field, 'label' | 'hint' | 'error'>

/** Attributes that name the hint and the error of a control. */
const described = (id: string, { hint, error }: Around) => ({
  'aria-describedby': [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || undefined,
  'aria-invalid': error ? 'true' : undefined,
})

const labelled = (id: string, { label, hint, error }: Around, control: Html): Html =>
  html`<div class="field">
<label for="${id}">${label}</label>
${hint && html`<p class="hint" id="${id}-hint">${hint}</p>\n`}${control}
${error && html`<p class="error" id="${id}-error">${error}</p>\n`}</div>
`

export const field = ({ name, label, hint, error, type = 'text', id: given, ...more }: Field): Html => {
  const id = `field-${given ?? name}`
  const own = attributes({
    ...{ id, name, type, ...more, ...described(id, { label, hint, error }) },
    ...(type !== 'password' && { autocapitalize: 'none', spellcheck: 'false' }),
  })
  return labelled(id, { label, hint, error }, html`<input${own}>`)
}

export interface Select extends Around {
  name: string
  /** Value of the option that is chosen at first. */
  value: string
  /** `lang`: language of the label, where it is not that of the page. */
  options: readonly { value: string; label: string; lang?: string }[]
}

export const select = ({ name, value: chosen, options, ...around }: Select): Html => {
  const id = `field-${name}`
  const option = ({ label, ...own }: Select['options'][number]) =>
    html`<option${attributes({ ...own, selected: own.value === chosen })}>${label}</option>\n`
  return labelled(
    id,
    around,
    html`<select${attributes({ id, name, ...described(id, around) })}>\n${options.map(option)}</select>`,
  )
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
