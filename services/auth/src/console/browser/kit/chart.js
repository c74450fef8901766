// Stacked bars over time. The drawing is for the eye alone: the table below it has the same numbers for every reader.
import { html, nothing, svg } from '../lit.js'
import { table } from './table.js'

/** @typedef {{ from: string, parts: Record<string, number> }} Bar Numbers of an hour or a day, by name. */

const HEIGHT = 100
const STEP = 10
const BAR = 8
/** Colours of console.css; all further names share the last one. */
const COLOURS = 6

/**
 * @param {object} chart
 * @param {string} chart.title
 * @param {readonly Bar[]} chart.bars Oldest first.
 * @param {(from: string) => string} chart.name Shows the time of a bar.
 */
export function chart({ title, bars, name }) {
  const names = namesOf(bars)
  const highest = Math.max(0, ...bars.map(sumOf))
  if (highest === 0) return html`<p class="empty">None in this time.</p>`
  const [first, last] = [bars[0], bars.at(-1)].map((bar) => name(bar?.from ?? ''))
  return html`
    <div class="chart" aria-hidden="true">
      <span>${highest}</span>
      <svg viewBox="0 0 ${bars.length * STEP} ${HEIGHT}" preserveAspectRatio="none">
        ${bars.map((bar, index) => barOf(bar, index, { names, highest, name }))}
      </svg>
      <span class="ends"><span>${first}</span><span>${last}</span></span>
      ${names.length > 1 ? legend(names) : nothing}
    </div>
    <details>
      <summary>Numbers<span class="unseen"> of ${title}</span></summary>
      ${table({
        label: title,
        rows: bars.toReversed(),
        empty: '',
        columns: [
          { head: 'From', cell: ({ from }) => name(from) },
          ...names.map((each) => ({ head: each, cell: (/** @type {Bar} */ { parts }) => parts[each] ?? 0 })),
        ],
      })}
    </details>`
}

const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** Names a day as the service counts them. @param {string} from */
export const nameOfDay = (from) => DAY.format(new Date(from))

/** @param {Bar} bar */
const sumOf = ({ parts }) => Object.values(parts).reduce((sum, part) => sum + part, 0)

/** Returns the names of all bars, those of most first: their colours differ. @param {readonly Bar[]} bars */
function namesOf(bars) {
  /** @type {Map<string, number>} */
  const sums = new Map()
  for (const [name, part] of bars.flatMap(({ parts }) => Object.entries(parts))) {
    if (part > 0) sums.set(name, (sums.get(name) ?? 0) + part)
  }
  return [...sums].sort(([, a], [, b]) => b - a).map(([name]) => name)
}

/** Names with a colour of their own. @type {Record<string, number>} */
const OWN = { sent: 1, failed: 3, dropped: 4 }

/** @param {string} name @param {number} index */
const colour = (name, index) => `part-${OWN[name] ?? Math.min(index, COLOURS - 1)}`

/**
 * @param {Bar} bar
 * @param {number} index
 * @param {{ names: readonly string[], highest: number, name: (from: string) => string }} chart
 */
function barOf(bar, index, { names, highest, name }) {
  let top = HEIGHT
  const rects = names.map((each, number) => {
    const height = ((bar.parts[each] ?? 0) / highest) * HEIGHT
    top -= height
    const x = index * STEP + (STEP - BAR) / 2
    return svg`<rect class=${colour(each, number)} x=${x} y=${top} width=${BAR} height=${height}></rect>`
  })
  return svg`<g><title>${name(bar.from)}: ${sumOf(bar)}</title>${rects}</g>`
}

/** @param {readonly string[]} names */
const legend = (names) => html`
  <span class="legend">
    ${names.map((name, index) => html`<span><span class="swatch ${colour(name, index)}"></span>${name}</span>`)}
  </span>`
