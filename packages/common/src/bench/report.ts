// Results of a benchmark: rows against a goal, figures over a growing load, and single figures for the scaling sheet.
// Each is printed when it is measured. At the end all are written to `results/`: latest.json and latest.md, or under
// the name of another script. Shapes: results.ts.
import { mkdir, writeFile } from 'node:fs/promises'
import { figureText } from './figure-text.ts'
import { describeMachine } from './machine.ts'
import {
  type BenchFigure,
  type BenchGrowth,
  type BenchResults,
  type BenchRow,
  goalText,
  isMet,
  metText,
  resultText,
} from './results.ts'

/**
 * `settings` names the variables that change a run; `script` is the one of package.json, `file` the name of its
 * results.
 */
export function startReport(
  service: string,
  settings: readonly string[],
  { script = 'bench', file = 'latest' }: { script?: string; file?: string } = {},
) {
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
    /** Prints the rows as a table, of a failed run too. */
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
      await writeFile(new URL(`${file}.json`, directory), `${JSON.stringify(whole, null, 2)}\n`)
      await writeFile(new URL(`${file}.md`, directory), tableOf(whole, script, file))
    },
  }
}

function tableOf(
  { service, machine, shortenedBy, rows, growth, figures }: BenchResults,
  script: string,
  file: string,
): string {
  const short = Object.entries(shortenedBy).map(([name, value]) => `\`${name}=${value}\``)
  return [
    `# ${service}: what was measured`,
    `Written by \`npx -y pnpm@12 -C services/${service} ${script}\`; every figure is in [${file}.json](${file}.json) too.`,
    ...(short.length > 0
      ? [`**A changed run**, by ${short.join(', ')}: a proof that it works, not a comparison.`]
      : []),
    table(
      ['Machine', ''],
      [
        ['Cores, processor', `${machine.cores}, ${machine.processor}`],
        ['Memory', `${machine.memoryGib} GiB`],
        ['Load before the run', figureText(machine.loadBefore)],
        ['Node, PostgreSQL', `${machine.node}, ${machine.postgres}`],
        ['Date, commit', `${machine.date} UTC, ${machine.commit}`],
      ],
    ),
    '## Against the goals',
    table(
      ['What', 'Against', 'Ours', 'Theirs', 'Ratio or difference', 'Goal', 'Met'],
      rows.map((row) => [
        row.what,
        row.against,
        `${figureText(row.ours)} ${row.unit}`,
        `${figureText(row.theirs)} ${row.unit}`,
        resultText(row),
        goalText(row.goal),
        metText(row),
      ]),
    ),
    ...Object.values(growth).flatMap(({ title, axis, lines, points }) => [
      `## ${title}`,
      table(
        [axis, ...Object.values(lines)],
        points.map(({ at, values }) => [
          figureText(at),
          ...Object.keys(lines).map((name) => (values[name] === undefined ? '–' : figureText(values[name]))),
        ]),
      ),
    ]),
    '## Single figures',
    table(
      ['What', 'Value'],
      Object.values(figures).map(({ what, value, unit }) => [what, `${figureText(value)} ${unit}`]),
    ),
    '',
  ].join('\n\n')
}

function table(head: string[], lines: string[][]): string {
  const cells = (line: string[]) => `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [cells(head), cells(head.map(() => '---')), ...lines.map(cells)].join('\n')
}
