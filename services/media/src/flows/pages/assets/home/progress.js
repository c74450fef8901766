// Progress of a single clip on the page at `/`, for eyes and for screen readers.

import { text } from '../owner/page-data.js'
import { $ } from './elements.js'

let saidPercent = 0

export function report(step, fraction, detail = '') {
  $('detail').textContent = detail
  showFraction($('bar'), fraction)
  if ($('step').textContent !== step) {
    $('step').textContent = step
    saidPercent = 0
    say(step)
  }
  // Quarters only, so that a screen reader does not announce every percent.
  const quarter = Math.floor((fraction ?? 0) * 4) * 25
  if (quarter > saidPercent && quarter < 100) {
    saidPercent = quarter
    say(text('percent', { step, percent: quarter }))
  }
}
export const say = (sentence) => {
  $('live').textContent = sentence
}
/** Without a fraction the bar shows that there is progress. */
export function showFraction(bar, fraction) {
  if (fraction === undefined) bar.removeAttribute('value')
  else bar.value = Math.round(fraction * 100)
}
export const sizeOf = (bytes) => (bytes < 100_000 ? `${Math.ceil(bytes / 1024)} KB` : `${inMegabytes(bytes)} MB`)
export const inMegabytes = (bytes) =>
  (bytes / 1024 ** 2).toLocaleString(document.documentElement.lang, {
    minimumFractionDigits: bytes < 10 * 1024 ** 2 ? 1 : 0,
    maximumFractionDigits: bytes < 10 * 1024 ** 2 ? 1 : 0,
  })
