// Audit: the log with its filters, and its export as a file.
import { api } from '../api.js'
import { openDialog } from '../kit/dialog.js'
import { download } from '../kit/download.js'
import { badge, button, json, time } from '../kit/parts.js'
import { listOf } from '../kit/search.js'
import { pager, table } from '../kit/table.js'
import { toastFailure } from '../kit/toast.js'
import { html, nothing } from '../lit.js'
import { go, link } from '../router.js'

const PER_PAGE = 50
const SCOPES = { author: 'Author', action: 'Action', type: 'Type of action', user: 'Id of a user' }
const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** @typedef {Record<string, any>} Entry */
/** @typedef {{ query: string, from: string, before: string }} Filter */

/** @type {import('../page.js').Screen} */
export const audit = {
  path: '/audit',
  title: 'Audit',
  inMenu: true,
  async open(page) {
    const [query, from, before] = ['query', 'from', 'before'].map((name) => page.query.get(name) ?? '')
    const filter = /** @type {Filter} */ ({ query, from, before })
    const asked = api.list('/admin/audit', { ...filter, cursor: page.query.get('cursor'), limit: PER_PAGE })
    const list = await listOf(page, asked, ({ body, next }) => html`${entriesTable(body)}${pager(page, next)}`)
    page.show(html`${filters(filter)}${list}`)
  },
}

/** @param {Filter} filter */
function filters(filter) {
  const [, scope = 'author', text = ''] = /^(\w+):(.*)$/s.exec(filter.query) ?? []
  return html`
    <div class="bar"><form class="search" role="search" @submit=${search}>
      <label>Search in
        <select name="scope">
          ${Object.entries(SCOPES).map(
            ([value, label]) => html`<option value=${value} .selected=${value === scope}>${label}</option>`,
          )}
        </select>
      </label>
      <label>Text
        <input type="search" name="text" .value=${text} autocomplete="off" spellcheck="false">
      </label>
      <label>From (UTC) <input type="date" name="from" .value=${filter.from}></label>
      <label>Before (UTC) <input type="date" name="before" .value=${filter.before}></label>
      <button type="submit" class="quiet">Search</button>
    </form><div class="actions">
      ${button('Export as JSON lines', () => saveEntries(filter, 'jsonl'))}
      ${button('Export as CSV', () => saveEntries(filter, 'csv'))}
    </div></div>`
}

/** @param {SubmitEvent} event */
function search(event) {
  event.preventDefault()
  const values = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))
  const [scope, text, from, before] = ['scope', 'text', 'from', 'before'].map((name) => String(values.get(name)).trim())
  go('/audit', { query: text && `${scope}:${text}`, from, before })
}

/** @param {readonly Entry[]} rows */
const entriesTable = (rows) =>
  table({
    label: 'Entries',
    rows,
    empty: 'No entry matches.',
    columns: [
      { head: 'Time', cell: ({ created_at: at }) => time(at) },
      {
        head: 'Action',
        cell: ({ payload }) => badge(payload.action, payload.action === 'login_failed' ? 'bad' : 'plain'),
      },
      { head: 'Author', cell: authorOf },
      { head: 'User', cell: ({ payload }) => userLink(payload.traits?.user_id, payload.traits?.user_email) },
      { head: 'Address', cell: ({ ip_address: ip }) => html`<span class="ip">${ip || '–'}</span>` },
      {
        head: 'Details',
        cell: (entry) => html`<div class="actions">${button('Details', () => showEntry(entry))}</div>`,
      },
    ],
  })

/** @param {Entry} entry */
const showEntry = (entry) =>
  openDialog(
    'Entry',
    (close) => html`
      ${json('Entry', entry)}
      <div class="actions">${button('Close', () => close())}</div>`,
  )

/** @param {Entry} entry */
const authorOf = ({ payload: { actor_id: id, actor_username: name, via } }) =>
  html`${id && id !== NIL_UUID ? userLink(id, name) : name || '–'}${via ? ` (${via})` : nothing}`

/** @param {string | undefined} id @param {string | undefined} name */
const userLink = (id, name) =>
  id ? html`<a href=${link(`/users/${id}`)}>${name || `user ${id.slice(0, 8)}`}</a>` : '–'

/**
 * Saves the entries that the filter finds. The request needs the header of the console, which no link can send.
 * @param {Filter} filter @param {'jsonl' | 'csv'} format
 */
async function saveEntries(filter, format) {
  try {
    download(`audit.${format}`, await api.text('/admin/audit/export', { ...filter, format }), 'text/plain')
  } catch (error) {
    toastFailure(error)
  }
}
