// Keys that sign tokens and encrypt rows: their age, and what still needs them. They change by environment and restart.
import { api } from '../api.js'
import { badge, section, time } from '../kit/parts.js'
import { table } from '../kit/table.js'
import { html, nothing } from '../lit.js'

/** @type {Record<string, 'good' | 'bad' | 'plain'>} */
const KINDS = { signs: 'good', encrypts: 'good', missing: 'bad', changed: 'bad' }

/** @type {import('../page.js').Screen} */
export const keys = {
  path: '/keys',
  title: 'Keys',
  inMenu: true,
  async open(page) {
    const { signing, encryption, counted_at, access_token_lifetime: seconds } = await api.get('/admin/keys')
    const state = { head: 'State', cell: (/** @type {any} */ key) => badge(key.state, KINDS[key.state]) }
    const algorithm = { head: 'Algorithm', cell: (/** @type {any} */ key) => key.algorithm }
    page.show(html`
      ${section(
        'Keys that sign access tokens',
        html`
          ${table({
            label: 'Keys that sign access tokens',
            rows: signing,
            empty: 'There are none.',
            columns: [
              { head: 'Id', cell: (key) => html`<code>${key.id ?? 'AUTH_JWT_SECRET'}</code>` },
              algorithm,
              state,
              { head: 'Published', cell: (key) => (key.published ? 'yes' : 'no') },
              { head: 'Made', cell: (key) => time(key.created) },
            ],
          })}
          <p class="hint">A key that has stopped signing is needed for another ${seconds} seconds, the lifetime of access tokens.</p>`,
      )}
      ${section(
        'Keys that encrypt',
        html`
          ${table({
            label: 'Keys that encrypt',
            rows: encryption,
            empty: 'There are none.',
            columns: [
              { head: 'Id', cell: (key) => html`<code>${key.id ?? 'without id'}</code>` },
              algorithm,
              state,
              { head: 'Made', cell: (key) => key.created ?? '–' },
              { head: 'Needed by', cell: usesOf },
            ],
          })}
          <p class="hint">
            ${counted_at ? html`Rows were counted ${time(counted_at)}.` : nothing}
            Before you drop a key, run <code>keys encryption rotate</code>, then <code>keys encryption status</code>.
          </p>`,
      )}`)
  },
}

/** @param {{ rows?: Record<string, number> }} key */
function usesOf({ rows }) {
  if (rows === undefined) return 'not counted yet'
  const used = Object.entries(rows).filter(([, count]) => count > 0)
  return used.length === 0 ? 'no row' : used.map(([name, count]) => `${count} rows of ${name}`).join(', ')
}
