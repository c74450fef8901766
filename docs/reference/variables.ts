// Tables of variables. One that exists once per provider, mail kind or the like is one row, with a row for each
// exception.
import type { Variables } from '../../packages/common/src/config/variables.ts'
import { cell, code, type Generated, tableOf } from './generated.ts'

/** Variables with the same heading on the page. */
export interface VariableGroup {
  /** Name between the marks, after `variables`. */
  mark: string
  variables: Variables
  repeated?: readonly Repeated[]
}

/** Variables that differ only in the part of their name which the group captures. */
export interface Repeated {
  /** First group: the part that differs. */
  pattern: RegExp
  /** Stands for that part: `<P>`. */
  placeholder: string
  /** Parts of a meaning that always differ, and their common wording. */
  reword?: readonly [RegExp, string]
}

/** Throws where a variable has no group. */
export function variableTables(
  page: string,
  prefix: string,
  all: Variables,
  groups: readonly VariableGroup[],
): Generated[] {
  const grouped = new Set(groups.flatMap(({ variables }) => Object.keys(variables)))
  const missing = Object.keys(all).filter((name) => !grouped.has(name))
  if (missing.length > 0) throw new Error(`variables without a group in docs/reference: ${missing.join(', ')}`)
  return groups.map(({ mark, variables, repeated = [] }) => ({
    page,
    mark: `variables ${mark}`,
    markdown: tableOf(
      ['Variable', 'Type', 'Default', 'Meaning'],
      rowsOf(variables, repeated).map((row) => [
        [prefix + row.name, ...row.aliases].map(code).join(', also '),
        cell(row.type),
        row.fallback,
        cell(row.meaning),
      ]),
    ),
  }))
}

interface Row {
  name: string
  aliases: readonly string[]
  type: string
  fallback: string
  meaning: string
}

function rowsOf(variables: Variables, repeated: readonly Repeated[]): Row[] {
  const families = new Map<string, { own: Row; common: Row }[]>()
  for (const [name, entry] of Object.entries(variables)) {
    const fallback = entry.required ? 'required' : entry.default ? code(entry.default) : '–'
    const own = { name, aliases: entry.aliases ?? [], type: entry.type, fallback, meaning: entry.meaning }
    const common = commonForm(own, repeated)
    families.set(common.name, [...(families.get(common.name) ?? []), { own, common }])
  }
  return [...families.values()].flatMap((family) => {
    const usual = mostFrequent(family.map(({ common }) => JSON.stringify(common)))
    const exceptions = family.filter(({ common }) => JSON.stringify(common) !== usual).map(({ own }) => own)
    return [JSON.parse(usual) as Row, ...exceptions]
  })
}

/** The row with the placeholder in place of the part that differs. */
function commonForm(row: Row, repeated: readonly Repeated[]): Row {
  for (const { pattern, placeholder, reword } of repeated) {
    const part = pattern.exec(row.name)?.[1]
    if (part === undefined) continue
    const inText = code(placeholder.toLowerCase())
    const meaning = reword ? row.meaning.replace(...reword) : row.meaning
    return {
      ...row,
      name: row.name.replace(`_${part}`, `_${placeholder}`),
      meaning: meaning.replace(new RegExp(`\\b${part.toLowerCase()}(_notification)?\\b`), inText),
    }
  }
  return row
}

const mostFrequent = (texts: readonly string[]): string => {
  const countOf = (text: string) => texts.filter((other) => other === text).length
  return texts.reduce((best, text) => (countOf(text) > countOf(best) ? text : best))
}
