import { figureText } from './figure-text.ts'
import { type BenchResults, goalText, isMet, resultText } from './results.ts'

export function tableOf({ service, machine, shortenedBy, rows, growth, figures }: BenchResults): string {
  const short = Object.entries(shortenedBy).map(([name, value]) => `\`${name}=${value}\``)
  return [
    `# ${service}: what was measured`,
    `Written by \`npx -y pnpm@12 -C services/${service} bench\`; every figure is in [latest.json](latest.json) too.`,
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
    `![The goals as bars, the growth as lines](latest.svg)`,
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
        isMet(row) ? 'yes' : '**no**',
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
