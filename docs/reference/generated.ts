// Generated parts of the reference: each stands in a page between `<!-- NAME -->` and `<!-- end NAME -->`, and
// everything around it is written by hand. A fact of the code is not typed again. Lists: auth.ts, media.ts; tests:
// services/*/test/reference.test.ts; the command that writes the pages: update.ts.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ErrorCatalogue } from '../../packages/common/src/errors.ts'
import type { Command } from '../../packages/common/src/process/command-line.ts'

export interface Generated {
  /** Path of the page below docs/reference. */
  page: string
  /** Name between the marks. */
  mark: string
  markdown: string
}

type Pages = Map<string, { before: string; after: string }>

/** Pages by path, with their generated parts as the code has them now. Throws where a page lacks the marks of one. */
export async function renderPages(parts: readonly Generated[]): Promise<Pages> {
  const pages: Pages = new Map()
  for (const { page, mark, markdown } of parts) {
    const path = join(import.meta.dirname, page)
    const before = pages.get(path)?.before ?? (await readFile(path, 'utf8'))
    pages.set(path, { before, after: fill(pages.get(path)?.after ?? before, mark, markdown, page) })
  }
  return pages
}

/** Names of the pages whose generated parts differ from the code: `node docs/reference/update.ts` writes them. */
export async function outdatedPages(parts: readonly Generated[]): Promise<string[]> {
  const pages = await renderPages(parts)
  return [...pages].filter(([, { before, after }]) => before !== after).map(([path]) => path)
}

function fill(text: string, mark: string, markdown: string, page: string): string {
  const [begin, end] = [`<!-- ${mark} -->\n`, `<!-- end ${mark} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from)
    throw new Error(`${page} has no place for ${mark}: add the lines ${begin.trim()} and ${end}`)
  return `${text.slice(0, from + begin.length)}\n${markdown.trim()}\n\n${text.slice(to)}`
}

export const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

/** Text as one cell of a table. */
export const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

export const code = (text: string): string => `\`${text}\``

/** Commands in the order of the help, with their options; `commands` between the marks. */
export function commandsPart(page: string, commands: readonly Command[]): Generated {
  const rows = commands.map(({ name, operands = [], options = {}, summary }) => {
    const own = Object.entries(options).map(([option, { value, meaning }]) => {
      return `${code(`--${option}${value ? ` ${value}` : ''}`)}: ${meaning}`
    })
    return [code([name, ...operands].join(' ')), cell(summary), cell(own.join(' · '))]
  })
  return { page, mark: 'commands', markdown: tableOf(['Command', 'Does', 'Options'], rows) }
}

/** Codes in alphabetical order; `errors` between the marks. */
export function errorsPart(page: string, catalogue: ErrorCatalogue): Generated {
  const rows = Object.entries(catalogue).map(([name, { status, message }]) => [code(name), `${status}`, cell(message)])
  return { page, mark: 'errors', markdown: tableOf(['Code', 'Status', 'Message'], rows.sort()) }
}
