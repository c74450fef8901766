// Settings: effective values, where they come from, and what to review. They change by environment and restart.
import { api } from '../api.js'
import { badge, section } from '../kit/parts.js'
import { filterForm } from '../kit/search.js'
import { table } from '../kit/table.js'
import { html, nothing } from '../lit.js'

/** @type {Record<string, string>} */
const SOURCES = { environment: 'environment', file: '.env file', default: 'default', unset: 'unset' }

const SHOWN = [
  { value: 'set', label: 'Set by you' },
  { value: 'findings', label: 'To review' },
]

/** @type {import('../page.js').Screen} */
export const settings = {
  path: '/settings',
  title: 'Settings',
  inMenu: true,
  async open(page) {
    const { settings: all, problems, warnings, review } = await api.get('/admin/settings')
    const rows = all.filter((/** @type {any} */ setting) => isShown(setting, page.query))
    page.show(html`
      <p>Each is a variable of the environment. The service reads them at its start: a change needs a restart.</p>
      ${findings('Cannot work', problems)}
      ${findings('Warnings', warnings)}
      ${findings('To review', review)}
      <div class="bar">
        ${filterForm(page, [
          { name: 'name', label: 'Search', hint: 'Part of a name or a meaning' },
          { name: 'show', label: 'Show', options: SHOWN },
        ])}
      </div>
      ${table({
        label: 'Settings',
        rows,
        empty: 'No setting fits.',
        columns: [
          { head: 'Variable', cell: nameOf },
          { head: 'Value', cell: shownValue },
          { head: 'From', cell: sourceOf },
        ],
      })}`)
  },
}

/** @param {any} setting @param {URLSearchParams} query */
function isShown({ name, meaning, source, findings }, query) {
  const text = query.get('name')?.toLowerCase() ?? ''
  const show = query.get('show')
  if (show === 'set' && source !== 'environment' && source !== 'file') return false
  if (show === 'findings' && findings.length === 0) return false
  return `${name} ${meaning}`.toLowerCase().includes(text)
}

/** @param {any} setting */
const nameOf = ({ name, meaning, findings: lines }) => html`
  <code>${name}</code><br>
  <span class="hint">${marked(meaning)}</span>
  ${lines.map((/** @type {string} */ line) => html`<br><span class="error">${line}</span>`)}`

/** Shows parts in backquotes as code. @param {string} text */
const marked = (text) => text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))

/** Names the variable where it has another name, such as one without prefix. @param {any} setting */
const sourceOf = ({ name, source, given_as: given = name }) => html`
  ${badge(SOURCES[source] ?? source)} ${given === name ? nothing : html`as <code>${given}</code>`}`

/** @param {any} setting */
function shownValue({ value, secret, source }) {
  if (value) return html`<code>${value}</code>`
  return secret && source !== 'unset' && value === null ? badge('secret, set') : '–'
}

/** @param {string} title @param {string[]} lines */
const findings = (title, lines) =>
  lines.length === 0 ? nothing : section(title, html`<ul>${lines.map((text) => html`<li>${text}</li>`)}</ul>`)
