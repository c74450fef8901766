// Tables of lists, and the links to their other pages. On a narrow screen each row becomes a card (console.css), which
// would end the meaning of the elements: roles keep it.
import { html, nothing } from '../lit.js'
import { link, present } from '../router.js'

/** @typedef {{ head: string, cell: (row: any) => unknown }} Column */

/** @param {{ label: string, columns: Column[], rows: readonly any[], empty: string }} options */
export const table = ({ label, columns, rows, empty }) =>
  rows.length === 0
    ? html`<p class="empty">${empty}</p>`
    : html`
      <table role="table" aria-label=${label}>
        <thead role="rowgroup">
          <tr role="row">${columns.map(({ head }) => html`<th role="columnheader" scope="col">${head}</th>`)}</tr>
        </thead>
        <tbody role="rowgroup">
          ${rows.map(
            (row) => html`
              <tr role="row">
                ${columns.map(({ head, cell }) => html`<td role="cell" data-column=${head}>${cell(row)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>`

/** @typedef {Record<string, string> | undefined} Next */

/**
 * Links to the first and the next page; the browser's own button goes back.
 * @param {import('../page.js').Page} page @param {Next} next
 */
export function pager({ query }, next) {
  const { path } = present()
  const others = Object.fromEntries([...query].filter(([name]) => name !== 'cursor' && name !== 'page'))
  const isFirst = !query.has('cursor') && !query.has('page')
  if (isFirst && next === undefined) return nothing
  return html`
    <nav class="pager" aria-label="Pages">
      ${isFirst ? nothing : html`<a href=${link(path, others)}>First page</a>`}
      ${next === undefined ? nothing : html`<a rel="next" href=${link(path, { ...others, ...next })}>Next page</a>`}
    </nav>`
}
