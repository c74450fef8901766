// The audit log as a file: JSON lines, or CSV for a spreadsheet.
import type { ListedEntry } from '../../core/audit/list-audit.store.ts'
import type { Position } from '../../db/position.ts'
import type { Metadata } from '../../db/tables.ts'

export const EXPORT_FORMATS = ['jsonl', 'csv'] as const

type Format = (typeof EXPORT_FORMATS)[number]

export type ReadEntries = (page: {
  limit: number
  after: Position | undefined
}) => Promise<{ entries: ListedEntry[]; next: Position | undefined }>

/** Entries read at once: memory does not grow with the number of all. */
const AT_ONCE = 1_000

/** Reads the first entries, whose failure is an answer, and returns the headers and the whole text in parts. */
export async function auditFile(format: Format, read: ReadEntries) {
  const first = await read({ limit: AT_ONCE, after: undefined })
  return {
    headers: {
      'content-type': { jsonl: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' }[format],
      'content-disposition': `attachment; filename="audit.${format}"`,
    },
    text: textOf(format, first, read),
  }
}

async function* textOf(format: Format, first: Awaited<ReturnType<ReadEntries>>, read: ReadEntries) {
  const toLine = { jsonl: toJsonLine, csv: toCsvLine }[format]
  if (format === 'csv') yield csvLine(Object.keys(CSV_COLUMNS))
  for (let page = first; ; page = await read({ limit: AT_ONCE, after: page.next })) {
    yield page.entries.map(toLine).join('')
    if (!page.next) return
  }
}

/** The same line as that of `audit export`. */
const toJsonLine = ({ id, created_at, ip_address, payload }: ListedEntry) =>
  `${JSON.stringify({ id, created_at: created_at.toISOString(), ip_address, payload })}\n`

const CSV_COLUMNS: Record<string, (entry: ListedEntry) => unknown> = {
  id: ({ id }) => id,
  created_at: ({ created_at: at }) => at.toISOString(),
  action: ({ payload }) => payload.action,
  actor_id: ({ payload }) => payload.actor_id,
  actor_username: ({ payload }) => payload.actor_username,
  user_id: ({ payload }) => (payload.traits as Metadata | undefined)?.user_id,
  ip_address: ({ ip_address: ip }) => ip,
  user_agent: ({ payload }) => payload.user_agent,
  via: ({ payload }) => payload.via,
  traits: ({ payload }) => payload.traits && JSON.stringify(payload.traits),
}

const toCsvLine = (entry: ListedEntry) => csvLine(Object.values(CSV_COLUMNS).map((column) => column(entry)))

/** RFC 4180. */
const csvLine = (cells: unknown[]) => `${cells.map(csvCell).join(',')}\r\n`

/** A spreadsheet runs a text that begins like a formula, and names and addresses are the choice of strangers. */
const FORMULA = /^[=+\-@\t\r]/

function csvCell(value: unknown): string {
  const text = String(value ?? '')
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
}
