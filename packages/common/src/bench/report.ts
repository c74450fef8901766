// What a benchmark found: rows against a goal, figures over a growing load, and single figures that sizes are calculated
// from. The one rule: it is printed as it comes and written whole at the end, to `results/`: latest.json, .md and .svg.
// The table is made in report-table.ts, the picture in report-picture.ts.
import { mkdir, writeFile } from 'node:fs/promises'
import { figureText } from './figure-text.ts'
import { describeMachine } from './machine.ts'
import { pictureOf } from './report-picture.ts'
import { tableOf } from './report-table.ts'
import {
  type BenchFigure,
  type BenchGrowth,
  type BenchResults,
  type BenchRow,
  goalText,
  isMet,
  resultText,
} from './results.ts'

/** `settings`: the variables that change a run. */
export function startReport(service: string, settings: readonly string[]) {
  const given = settings.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))
  const results: Omit<BenchResults, 'machine'> = {
    service,
    shortenedBy: Object.fromEntries(given),
    rows: [],
    growth: {},
    figures: {},
  }
  const machine = describeMachine()
  return {
    row: (row: BenchRow) => {
      results.rows.push(row)
      const { what, against, unit, ours, theirs, compared, goal } = row
      const sides = `${figureText(ours)} | ${figureText(theirs)} ${unit}`
      console.log(`${what} | ${against}: ${sides}, ${compared} ${resultText(row)}, goal ${goalText(goal)}`)
    },
    growth: (id: string, kind: Omit<BenchGrowth, 'points'>) => {
      const points: BenchGrowth['points'] = []
      results.growth[id] = { ...kind, points }
      return (at: number, values: Record<string, number>) => {
        points.push({ at, values })
        const texts = Object.entries(values).map(([name, value]) => `${kind.lines[name]} ${figureText(value)}`)
        console.log(`${figureText(at)} ${kind.axis}: ${texts.join(', ')}`)
      }
    },
    figure: (id: string, figure: BenchFigure) => {
      results.figures[id] = figure
      console.log(`${figure.what}: ${figureText(figure.value)} ${figure.unit}`)
    },
    /** The table of rows, also of a run that failed. */
    print: () => {
      const shown = results.rows.map((row) => [
        `${row.what} | ${row.against}`,
        {
          ours: `${figureText(row.ours)} ${row.unit}`,
          against: `${figureText(row.theirs)} ${row.unit}`,
          [row.compared]: resultText(row),
          goal: goalText(row.goal),
          met: isMet(row),
        },
      ])
      console.table(Object.fromEntries(shown))
    },
    write: async (directory: URL, versions: { postgres: string }) => {
      const whole: BenchResults = { ...results, machine: { ...(await machine), ...versions } }
      await mkdir(directory, { recursive: true })
      await writeFile(new URL('latest.json', directory), `${JSON.stringify(whole, null, 2)}\n`)
      await writeFile(new URL('latest.md', directory), tableOf(whole))
      await writeFile(new URL('latest.svg', directory), pictureOf(whole))
    },
  }
}
