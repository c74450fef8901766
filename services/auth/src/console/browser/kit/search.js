// Searches and filters: each is a parameter of the address, so that a link and the way back have it too.
import { html } from '../lit.js'
import { go, present } from '../router.js'

/** @typedef {import('../page.js').Page} Page */
/** @typedef {string | { value: string, label: string }} Choice */

/**
 * Goes to the first page of the list with other parameters.
 * @param {Page} page
 * @param {Record<string, string>} changes
 */
function change({ query }, changes) {
  const { cursor: _cursor, page: _page, ...others } = Object.fromEntries(query)
  go(present().path, { ...others, ...changes })
}

/** @param {Page} page @param {{ name: string, label: string, hint?: string }} field */
export const searchField = (page, { name, label, hint = '' }) => html`
  <form role="search" class="search" @submit=${(/** @type {SubmitEvent} */ event) => {
    event.preventDefault()
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    change(page, { [name]: String(new FormData(form).get(name) ?? '').trim() })
  }}>
    <label>${label}
      <input type="search" name=${name} .value=${page.query.get(name) ?? ''} placeholder=${hint} autocomplete="off" spellcheck="false">
    </label>
    <button type="submit" class="quiet">Search</button>
  </form>`

/** @param {Page} page @param {{ name: string, label: string, options: readonly Choice[], empty?: string }[]} fields */
export const choices = (page, fields) => html`
  <form class="search" @submit=${(/** @type {SubmitEvent} */ event) => event.preventDefault()}>
    ${fields.map(({ name, label, options, empty = 'All' }) => {
      const chosen = page.query.get(name) ?? ''
      const entries = options.map((option) => (typeof option === 'string' ? { value: option, label: option } : option))
      return html`
        <label>${label}
          <select name=${name} @change=${(/** @type {Event} */ event) =>
            change(page, { [name]: /** @type {HTMLSelectElement} */ (event.currentTarget).value })}>
            ${[{ value: '', label: empty }, ...entries].map(
              (entry) => html`<option value=${entry.value} ?selected=${entry.value === chosen}>${entry.label}</option>`,
            )}
          </select>
        </label>`
    })}
  </form>`
