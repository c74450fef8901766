// Views by day as a drawn line, and the same numbers as a table.
import { type Html, html } from '@services/common/html'
import { table } from '@services/common/pages/table'
import { VIEW_KINDS, type ViewCounts } from '../../../core/views/views.store.ts'
import { ownClipWords } from '../../../words/own-clip.ts'
import type { Setting } from './card.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const [WIDTH, HEIGHT] = [290, 80]

const sumOf = (counts: ViewCounts) => VIEW_KINDS.reduce((sum, kind) => sum + counts[kind], 0)

export function viewsByDay(
  { days, total }: { days: readonly (ViewCounts & { day: string })[]; total: ViewCounts },
  { language, formats, now }: Setting,
): Html {
  const words = ownClipWords[language]
  const byDay = new Map(days.map((counts) => [counts.day, counts]))
  const dates = Array.from({ length: DAYS }, (_, n) => new Date(now.getTime() - (DAYS - 1 - n) * DAY_MS))
  const counts = dates.map((date) => {
    const found = byDay.get(date.toISOString().slice(0, 10))
    return found ? sumOf(found) : 0
  })
  const most = Math.max(1, ...counts)
  const points = counts.map((count, n) => `${n * 10},${(HEIGHT - (count / most) * HEIGHT).toFixed(1)}`).join(' ')
  const month = counts.reduce((sum, count) => sum + count, 0)
  const summary = `${formats.number(month)}, ${formats.number(sumOf(total))} ${words.inAll}`
  const rows = days.map(({ day, ...each }) => [
    formats.day(new Date(`${day}T00:00Z`)),
    ...VIEW_KINDS.map((kind) => formats.number(each[kind])),
  ])
  const columns = [words.day, ...VIEW_KINDS.map((kind) => words.kinds[kind])]
  return html`<section class="part" aria-labelledby="views"><h2 id="views">${words.viewsTitle}</h2>
<p><strong>${summary}</strong></p>
<svg class="line" viewBox="0 -2 ${WIDTH} ${HEIGHT + 4}" preserveAspectRatio="none" role="img" aria-label="${words.viewsTitle}: ${summary}"><polygon points="0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}"></polygon><polyline points="${points}"></polyline></svg>
<p class="ends"><span>${formats.day(dates[0] ?? now)}</span><span>${formats.day(now)}</span></p>
<details><summary>${words.numbers}</summary>${table({ caption: words.viewsTitle, columns, rows, empty: words.viewsNone })}</details></section>
`
}
