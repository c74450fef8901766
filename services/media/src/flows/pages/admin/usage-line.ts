import { type Html, html } from '@services/common/html'
import type { TokenDay } from '../../../core/tokens/usage.store.ts'
import type { View } from './admin-page.http.ts'

const [WIDTH, HEIGHT, DAYS] = [600, 120, 30]
const DAY_MS = 86_400_000

/** Calls of the last 30 days as a line, and the days with their numbers as a table for all readers. */
export function usageLine({ words, formats }: View, days: readonly TokenDay[], now: Date): Html {
  const byDay = new Map(days.map((day) => [day.day, day.requests]))
  const values = Array.from({ length: DAYS }, (_, index) => {
    const day = new Date(now.getTime() - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10)
    return byDay.get(day) ?? 0
  })
  const most = Math.max(1, ...values)
  const point = (value: number, index: number) =>
    `${Math.round((index * WIDTH) / (DAYS - 1))},${Math.round(HEIGHT - (value * (HEIGHT - 4)) / most - 2)}`
  return html`<figure class="usage">
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><polyline points="${values.map(point).join(' ')}"></polyline></svg>
<figcaption class="hint">${words.usageLine} ${formats.number(Math.max(...values))}</figcaption>
</figure>
`
}
