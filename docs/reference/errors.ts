import { cell, code, type Generated, tableOf } from './generated.ts'

type Catalogue = Readonly<Record<string, { status: number; message: string }>>

/** Codes in alphabetical order; `errors` between the marks. */
export function errorsPart(page: string, catalogue: Catalogue): Generated {
  const rows = Object.entries(catalogue).map(([name, { status, message }]) => [
    code(name),
    String(status),
    cell(message),
  ])
  return { page, mark: 'errors', markdown: tableOf(['Code', 'Status', 'Message'], rows.sort()) }
}
