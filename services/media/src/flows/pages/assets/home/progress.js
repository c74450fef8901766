// Progress of the page at `/`, for eyes and for screen readers.
import { $ } from './elements.js'

let saidPercent = 0

export function report(step, fraction, detail = '') {
  $('detail').textContent = detail
  if (fraction === undefined) $('bar').removeAttribute('value')
  else $('bar').value = Math.round(fraction * 100)
  if ($('step').textContent !== step) {
    $('step').textContent = step
    saidPercent = 0
    say(step)
  }
  // Quarters only, so that a screen reader does not announce every percent.
  const quarter = Math.floor((fraction ?? 0) * 4) * 25
  if (quarter > saidPercent && quarter < 100) {
    saidPercent = quarter
    say(`${step}, ${quarter} percent`)
  }
}
export const say = (text) => {
  $('live').textContent = text
}
export const sizeOf = (bytes) => (bytes < 100_000 ? `${Math.ceil(bytes / 1024)} KB` : `${inMegabytes(bytes)} MB`)
export const inMegabytes = (bytes) => (bytes / 1024 ** 2).toFixed(bytes < 10 * 1024 ** 2 ? 1 : 0)

export const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
