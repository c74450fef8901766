// Forms in dialogs: fields, the checked JSON editor, and the failure of the request beside them.
import { html, nothing } from '../lit.js'
import { openDialog, workOf } from './dialog.js'
import { checkJson, showJsonProblem } from './json-editor.js'
import { toast } from './toast.js'

/** @typedef {{ value: string, label: string }} Option */
/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {'text' | 'email' | 'tel' | 'password' | 'number' | 'checkbox' | 'select' | 'textarea' | 'json'} [type]
 * @property {any} [value]
 * @property {readonly (string | Option)[]} [options] Of a select.
 * @property {string} [hint]
 * @property {boolean} [required]
 * @property {string} [confirmedBy] Name of a checkbox that speaks of this value alone: another value unticks it.
 */

/**
 * @typedef {object} Form
 * @property {string} title
 * @property {unknown} [text]
 * @property {readonly Field[]} fields
 * @property {string} action
 * @property {(values: Record<string, any>) => Promise<unknown>} submit
 * @property {string} [done] Said once it is done.
 * @property {boolean} [isDangerous]
 */

/**
 * Opens a form; resolves with whether it was submitted. `submit` gets booleans of checkboxes, parsed JSON, else texts.
 * Its failure is shown in the dialog, which stays open, as it does where `submit` resolves with false.
 * @param {Form} form
 */
export async function formDialog({ title, text = nothing, fields, action, submit, done, isDangerous = false }) {
  let outcome = Promise.resolve(false)
  await openDialog(title, (close) => {
    const onSubmit = async (/** @type {SubmitEvent} */ event) => {
      event.preventDefault()
      const form = /** @type {HTMLFormElement} */ (event.currentTarget)
      const values = isBusy(form) ? undefined : valuesOf(form, fields)
      if (values === undefined) return
      outcome = workOf(/** @type {HTMLElement} */ (form.querySelector('p.error')), () => submit(values))
      if (await outcome) close()
    }
    const cancel = (/** @type {Event} */ { currentTarget }) => {
      if (!isBusy(/** @type {Element} */ (currentTarget))) close()
    }
    return html`
      ${text === nothing ? nothing : html`<p>${text}</p>`}
      <form class="fields" @submit=${onSubmit}>
        ${fields.map(fieldOf)}
        <p class="error" role="alert"></p>
        <div class="actions">
          <button type="button" class="quiet" @click=${cancel}>Cancel</button>
          <button type="submit" class=${isDangerous ? 'danger' : 'primary'}>${action}</button>
        </div>
      </form>`
  })
  // Another page can close the dialog while the request runs.
  const isDone = await outcome
  if (isDone && done) toast(done)
  return isDone
}

/** @param {Element} part */
const isBusy = (part) => part.closest('dialog')?.ariaBusy === 'true'

/** @param {Field} field */
function fieldOf(field) {
  const { name, label, type = 'text', value, hint, required = false } = field
  const id = `field-${name}`
  const hintId = hint ? `${id}-hint` : nothing
  const hintText = hint ? html`<span class="hint" id=${hintId}>${hint}</span>` : nothing
  if (type === 'checkbox') {
    return html`<div class="field check">
      <input type="checkbox" id=${id} name=${name} ?checked=${value === true} aria-describedby=${hintId}>
      <label for=${id}>${label}</label>${hintText}</div>`
  }
  return html`<div class="field"><label for=${id}>${label}</label>${hintText}${inputOf(field, id, hintId, required, type)}</div>`
}

/** @param {Field} field @param {string} id @param {unknown} hintId @param {boolean} required @param {string} type */
function inputOf({ name, value = '', options = [], confirmedBy }, id, hintId, required, type) {
  if (type === 'select') {
    const entries = options.map((option) => (typeof option === 'string' ? { value: option, label: option } : option))
    return html`<select id=${id} name=${name} aria-describedby=${hintId}>
      ${entries.map((entry) => html`<option value=${entry.value} ?selected=${entry.value === value}>${entry.label}</option>`)}
    </select>`
  }
  if (type === 'json') {
    return html`
      <textarea id=${id} name=${name} class="code" rows="12" spellcheck="false" autocomplete="off" aria-describedby="${id}-problem"
        .value=${JSON.stringify(value === '' ? {} : value, null, 2)} @input=${showJsonProblem}></textarea>
      <span class="error" id="${id}-problem" role="status"></span>`
  }
  if (type === 'textarea') {
    return html`<textarea id=${id} name=${name} rows="6" ?required=${required} aria-describedby=${hintId} .value=${value}></textarea>`
  }
  return html`<input type=${type} id=${id} name=${name} ?required=${required} aria-describedby=${hintId}
    autocomplete=${type === 'password' ? 'new-password' : 'off'} spellcheck="false" .value=${value}
    @input=${confirmedBy ? (/** @type {Event} */ event) => untick(event, confirmedBy, value) : nothing}>`
}

/** @param {Event} event @param {string} checkbox @param {string} confirmed */
function untick({ currentTarget }, checkbox, confirmed) {
  const { form, value } = /** @type {HTMLInputElement} */ (currentTarget)
  const box = /** @type {HTMLInputElement} */ (form?.elements.namedItem(checkbox))
  box.checked = value === confirmed && box.defaultChecked
}

/**
 * Returns undefined where JSON is broken; its field says why and gets the focus.
 * @param {HTMLFormElement} form
 * @param {readonly Field[]} fields
 */
function valuesOf(form, fields) {
  /** @type {Record<string, any>} */
  const values = {}
  for (const { name, type } of fields) {
    const input = /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
    if (type === 'checkbox') values[name] = input.checked
    else if (type === 'json') {
      const { value, problem } = checkJson(input.value)
      if (problem !== undefined) {
        input.focus()
        return undefined
      }
      values[name] = value
    } else values[name] = input.value
  }
  return values
}
