// SCALING.md is a spreadsheet: a row that begins with a name ends with the value's source and the value. A source is a
// key of a service's bench/results/latest.json (`auth rows.x.ours`), a formula of names above (`= a * b`), or words for
// an assumption. update.ts writes the values of the first two kinds.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { runInNewContext } from 'node:vm'
import { figureText } from '../../packages/common/src/bench/figure-text.ts'
import type { BenchResults } from '../../packages/common/src/bench/results.ts'

export const SHEET = new URL('../SCALING.md', import.meta.url)

const ROW = /^\| `(?<name>[a-zA-Z]\w*)` \| (?<what>.*) \| (?<source>.*) \| (?<value>[^|]*) \|$/
const MEASURED = /^`(?<service>[a-z]+) (?<path>[\w.-]+)`$/
const CALCULATED = /^`= (?<formula>.*)`$/

const FUNCTIONS = { ceil: Math.ceil, max: Math.max, min: Math.min }

/** Recalculates all values; `given` overrides some by name. Throws at the first invalid row. */
export function calculate(
  text: string,
  results: Record<string, BenchResults>,
  given: Record<string, number> = {},
): string {
  const values: Record<string, number> = {}
  const left = new Set(Object.keys(given))
  const lines = text.split('\n').map((line) => {
    const { name, what, source, value } = ROW.exec(line)?.groups ?? {}
    if (name === undefined || source === undefined || value === undefined) return line
    if (name in values) throw new Error(`${name} is there twice`)
    const isGiven = left.delete(name)
    values[name] = isGiven ? (given[name] as number) : cellValue(source, value, values, results)
    if (!Number.isFinite(values[name])) throw new Error(`${name} has no value: ${source}`)
    if (!isGiven && !source.startsWith('`')) return line // as it was written
    return `| \`${name}\` | ${what} | ${source} | ${figureText(values[name])}${isGiven ? ' (given)' : ''} |`
  })
  for (const name of left) throw new Error(`there is no ${name}`)
  return lines.join('\n')
}

function cellValue(
  source: string,
  written: string,
  values: Record<string, number>,
  results: Record<string, BenchResults>,
): number {
  const { formula } = CALCULATED.exec(source)?.groups ?? {}
  if (formula) return Number(runInNewContext(formula, { ...FUNCTIONS, ...values }))
  const { service, path } = MEASURED.exec(source)?.groups ?? {}
  if (!service || !path) return Number(written.replaceAll(',', ''))
  const found = results[service]
  if (!found) throw new Error(`there are no results of ${service}`)
  return measured(found, path)
}

/**
 * `rows.<id>.ours`, `rows.<id>.theirs`, `figures.<id>`, `growth.<id>.<first or last>.<figure, or at>`,
 * `machine.<fact>`.
 */
function measured({ rows, figures, growth, machine }: BenchResults, path: string): number {
  const [kind, id, side, name] = path.split('.') as [string, string, string, string]
  const row = rows.find((row) => row.id === id) as Record<string, unknown> | undefined
  const point = growth[id]?.points.at(side === 'last' ? -1 : 0)
  const found = {
    rows: row?.[side],
    figures: figures[id]?.value,
    growth: name === 'at' ? point?.at : point?.values[name],
    machine: (machine as unknown as Record<string, unknown>)[id],
  }[kind]
  if (typeof found !== 'number') throw new Error(`nothing was measured under ${path}`)
  return found
}

export async function readResults(): Promise<Record<string, BenchResults>> {
  const results: Record<string, BenchResults> = {}
  for (const service of ['auth', 'media']) {
    const file = new URL(`../../services/${service}/bench/results/latest.json`, import.meta.url)
    if (existsSync(file)) results[service] = JSON.parse(await readFile(file, 'utf8'))
  }
  return results
}
