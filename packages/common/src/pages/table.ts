import { type Html, type HtmlValue, html } from '../html.ts'

export interface Table {
  /** Name for screen readers. */
  caption: string
  columns: readonly string[]
  /** A cell for each column. */
  rows: readonly (readonly HtmlValue[])[]
  /** Sentence in place of a table without rows. */
  empty: string
}

/** A narrow screen shows each row as a list: its cells repeat the column's name. Roles keep the table a table there. */
export const table = ({ caption, columns, rows, empty }: Table): Html =>
  rows.length === 0
    ? html`<p class="empty">${empty}</p>\n`
    : html`<table role="table">
<caption class="unseen">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}</tr></thead>
<tbody role="rowgroup">
${rows.map((cells) => html`<tr role="row">${cells.map((cell, index) => html`<td role="cell" data-column="${columns[index]}">${cell}</td>`)}</tr>\n`)}</tbody>
</table>
`
