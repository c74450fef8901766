// Searches and filters: each is a parameter of the address, so that a link and the way back have it too.
import { html } from '../lit.js'
import { go, present } from '../router.js'
import { failure } from './parts.js'
import { pager } from './table.js'

/** @typedef {import('../page.js').Page} Page */
/** @typedef {string | { value: string, label: string }} Choice */
/** @typedef {{ name: string, label: string, hint?: string, options?: readonly Choice[], empty?: string }} Filter */

/**
 * Fields of a list, those with options as choices. Only the button and Enter apply them: keys that move through the
 * options change nothing else.
 * @param {Page} page @param {readonly Filter[]} filters
 */
export const filterForm = ({ query }, filters) => html`
  <form role="search" class="search" @submit=${(/** @type {SubmitEvent} */ event) => {
    event.preventDefault()
    const values = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))
    const given = filters.map(({ name }) => [name, String(values.get(name)).trim()])
    // The first page of the list with other parameters.
    const { cursor: _cursor, page: _page, ...others } = Object.fromEntries(query)
    go(present().path, { ...others, ...Object.fromEntries(given) })
  }}>
    ${filters.map((filter) => html`<label>${filter.label} ${inputOf(filter, query.get(filter.name) ?? '')}</label>`)}
    <button type="submit" class="quiet">Apply</button>
  </form>`

/** @param {Filter} filter @param {string} value */
function inputOf({ name, hint = '', options, empty = 'All' }, value) {
  if (options === undefined) {
    return html`<input type="search" name=${name} .value=${value} placeholder=${hint} autocomplete="off" spellcheck="false">`
  }
  const entries = options.map((option) => (typeof option === 'string' ? { value: option, label: option } : option))
  const isListed = value === '' || entries.some((entry) => entry.value === value)
  const all = [{ value: '', label: empty }, ...entries, ...(isListed ? [] : [{ value, label: value }])]
  return html`
    <select name=${name}>
      ${all.map((entry) => html`<option value=${entry.value} .selected=${entry.value === value}>${entry.label}</option>`)}
    </select>`
}

/**
 * Draws a list that was asked for, or says why it is not there. The filters beside it stay, to be corrected.
 * @template Answer
 * @param {Page} page @param {Promise<Answer>} list @param {(answer: Answer) => unknown} draw
 */
export const listOf = (page, list, draw) =>
  list.then(draw, (error) => html`${failure(error, page.reload)}${pager(page, undefined)}`)
