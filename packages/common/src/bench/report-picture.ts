import { figureText } from './figure-text.ts'
import { type BenchGrowth, type BenchResults, type BenchRow, goalText, isMet, resultOf, resultText } from './results.ts'

const WIDTH = 960
const MARGIN = 24
const LINE = 26

/** Start of the bars, and the width of a bar that equals its goal. */
const BARS_AT = 470
const GOAL_WIDTH = 170
/** Longest bar, in multiples of the goal. */
const LONGEST = 1.4

const CHART = { columns: 3, width: 288, height: 150, gap: 24 }

/** Light and dark colours, set in the image because a page's styles do not reach it. */
const STYLE = `
  svg { font: 13px system-ui, sans-serif; --paper: #fff; --ink: #1c2530; --dim: #5b6673; --faint: #d9dee5; --met: #1f6fb5; --missed: #c2560c }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #12171d; --ink: #e6ebf1; --dim: #9aa7b5; --faint: #313b47; --met: #62aef0; --missed: #f09a52 }
  }
  .paper { fill: var(--paper) } text { fill: var(--ink) } .dim { fill: var(--dim); font-size: 11px } .title { font-size: 16px; font-weight: 600 }
  .met { fill: var(--met) } .missed { fill: var(--missed) } .rule { stroke: var(--faint) } .goal { stroke: var(--ink); stroke-width: 2 }
  .line { fill: none; stroke: var(--met); stroke-width: 2 } .end { text-anchor: end } .middle { text-anchor: middle }`

/** Draws the results: a bar for each goal, a small chart for each figure at several loads. */
export function pictureOf({ service, machine, rows, growth }: BenchResults): string {
  const parts: string[] = []
  let y = MARGIN + 16
  const title = (words: string, note = '') => {
    parts.push(`<text class="title" x="${MARGIN}" y="${y}">${inXml(words)}</text>`)
    parts.push(`<text class="dim end" x="${WIDTH - MARGIN}" y="${y}">${inXml(note)}</text>`)
    y += 14
  }
  const isReached = ({ goal }: BenchRow) => goal.atLeast !== undefined && goal.atMost === undefined
  const withGoal = rows.filter(({ goal }) => goalText(goal) !== '–')
  const note = `${machine.cores} cores, Node ${machine.node}, PostgreSQL ${machine.postgres}, ${machine.date} UTC, ${machine.commit}`
  title(`${service}: at most the goal`, note)
  y = bars(
    parts,
    y,
    withGoal.filter((row) => !isReached(row)),
  )
  title(`${service}: at least the goal`)
  y = bars(parts, y, withGoal.filter(isReached))
  for (const one of Object.values(growth)) {
    title(one.title)
    y = charts(parts, y + 12, one)
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img">
<title>${inXml(`${service}: what pnpm bench measured`)}</title>
<style>${STYLE}
</style>
<rect class="paper" width="${WIDTH}" height="${y}"/>
${parts.join('\n')}
</svg>
`
}

function bars(parts: string[], top: number, rows: BenchRow[]): number {
  const goalAt = BARS_AT + GOAL_WIDTH
  rows.forEach((row, index) => {
    const y = top + index * LINE
    const width = Math.max(2, Math.min(shareOfGoal(row), LONGEST) * GOAL_WIDTH).toFixed(0)
    const label = `${row.what} | ${row.against}`
    const says = `${resultText(row)}, goal ${goalText(row.goal)}${isMet(row) ? '' : ', missed'}`
    parts.push(
      `<text x="${BARS_AT - 12}" y="${y + 18}" class="end" font-size="${label.length > 68 ? 11 : 13}">${inXml(label)}</text>`,
      `<rect class="${isMet(row) ? 'met' : 'missed'}" x="${BARS_AT}" y="${y + 6}" width="${width}" height="15" rx="2"/>`,
      `<text x="${BARS_AT + GOAL_WIDTH * LONGEST + 12}" y="${y + 18}">${inXml(says)}</text>`,
    )
  })
  const bottom = top + rows.length * LINE
  if (rows.length > 0) parts.push(`<path class="goal" d="M${goalAt} ${top + 2}V${bottom + 2}"/>`)
  return bottom + 40
}

/** Result as a fraction of the goal; for a range, 0 is its middle and 1 its border. */
function shareOfGoal(row: BenchRow): number {
  const { atLeast, atMost } = row.goal
  const result = resultOf(row)
  if (atLeast === undefined || atMost === undefined) return Math.max(0, result / (atLeast ?? atMost ?? 1))
  return Math.abs(result - (atLeast + atMost) / 2) / ((atMost - atLeast) / 2)
}

function charts(parts: string[], top: number, { axis, lines, points }: BenchGrowth): number {
  const names = Object.entries(lines)
  names.forEach(([name, label], index) => {
    const x = MARGIN + (index % CHART.columns) * (CHART.width + CHART.gap)
    const y = top + Math.floor(index / CHART.columns) * (CHART.height + CHART.gap)
    const values = points.flatMap(({ at, values }) => (values[name] === undefined ? [] : [{ at, value: values[name] }]))
    parts.push(`<g transform="translate(${x} ${y})">${chart(label, axis, values)}</g>`)
  })
  return top + Math.ceil(names.length / CHART.columns) * (CHART.height + CHART.gap) + 24
}

/** Draws values from 0 up, with the loads at equal distances: each is a multiple of the previous. */
function chart(label: string, axis: string, points: { at: number; value: number }[]): string {
  const { width, height } = CHART
  const [floor, ceiling, side] = [height - 24, 44, 22]
  const most = Math.max(...points.map(({ value }) => value), Number.MIN_VALUE)
  const placed = points.map(({ at, value }, index) => ({
    ...{ at, value },
    x: Math.round(side + (index * (width - 2 * side)) / Math.max(1, points.length - 1)),
    y: Math.round(floor - (value / most) * (floor - ceiling)),
  }))
  return [
    `<text y="12">${inXml(label)}</text>`,
    `<path class="rule" d="M0 ${floor}H${width}"/>`,
    `<path class="line" d="${placed.map(({ x, y }, index) => `${index ? 'L' : 'M'}${x} ${y}`).join('')}"/>`,
    ...placed.flatMap(({ x, y, at, value }) => [
      `<circle class="met" cx="${x}" cy="${y}" r="3"/>`,
      `<text class="middle" font-size="11" x="${x}" y="${y - 8}">${inXml(short(value))}</text>`,
      `<text class="dim middle" x="${x}" y="${floor + 14}">${inXml(short(at))}</text>`,
    ]),
    `<text class="dim end" x="${width}" y="${height + 2}">${inXml(axis)}</text>`,
  ].join('')
}

const short = (value: number) =>
  value >= 10_000
    ? new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format(value)
    : figureText(value)

const inXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
