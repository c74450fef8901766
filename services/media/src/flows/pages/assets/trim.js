// The preview of a chosen video on the page at `/`. Its part is set by sliders, by typing or at the shown moment, and
// plays in a loop. home.js says which file is chosen, and sends the fields.
import { $ } from './home/elements.js'
import { text } from './owner/page-data.js'

const [video, start, end, from, to] = ['source-video', 'start', 'end', 'from', 'to'].map($)
const MAX_SECONDS = Number($('form').dataset.maxSeconds)
/** Shorter parts are refused. */
const LEAST_SECONDS = 0.1

let address
let shown
/** File that the fields are about: it may be one of several for a while. */
let trimmed

$('form').addEventListener('chosen', ({ detail: file }) => {
  if (file === shown) return
  shown = file
  URL.revokeObjectURL(address)
  hidePreview()
  if (file && file !== trimmed) {
    for (const field of [start, end]) field.value = ''
    trimmed = file
  }
  if (!file || !/^video\/|\.(mp4|webm)$/i.test(`${file.type} ${file.name}`)) return
  address = URL.createObjectURL(file)
  video.src = address
})

function hidePreview() {
  address = undefined
  video.removeAttribute('src')
  video.load()
  $('trim-preview').hidden = true
  $('part').textContent = ''
  for (const button of [$('start-here'), $('end-here')]) button.hidden = true
}
video.addEventListener('error', hidePreview)

video.addEventListener('loadedmetadata', () => {
  // A browser's recording says no length: its part can be typed.
  if (!Number.isFinite(video.duration)) return hidePreview()
  for (const slider of [from, to]) slider.max = video.duration
  for (const button of [$('start-here'), $('end-here')]) button.hidden = false
  $('trim-preview').hidden = false
  from.value = read(start.value) ?? 0
  to.value = read(end.value) ?? Math.min(video.duration, MAX_SECONDS)
  const isTooLong = video.duration > MAX_SECONDS + LEAST_SECONDS
  if (isTooLong) $('trim').open = true
  playAsChosen()
  write()
})

/** Seconds of `12.5` or `1:02.5`; undefined of anything else. */
function read(text) {
  const [, minutes = 0, seconds] = /^(?:(\d+):(?=[0-5]?\d(?:\.|$)))?(\d+(?:\.\d+)?)$/.exec(text.trim()) ?? []
  return seconds === undefined ? undefined : Number(minutes) * 60 + Number(seconds)
}

function format(time) {
  const hundredths = Math.round(time * 100)
  const seconds = (hundredths % 6_000) / 100
  if (hundredths < 6_000) return String(seconds)
  return `${Math.floor(hundredths / 6_000)}:${seconds < 10 ? '0' : ''}${seconds}`
}

/** Writes the sliders into the fields; the source's own ends need no field. */
function write() {
  start.value = Number(from.value) > 0 ? format(Number(from.value)) : ''
  end.value = Number(to.value) < video.duration - 0.01 ? format(Number(to.value)) : ''
  for (const field of [start, end]) field.dispatchEvent(new Event('input', { bubbles: true }))
  describe()
}

function describe() {
  const seconds = (Number(to.value) - Number(from.value)) / Number($('speed').value || 1)
  const isTooLong = seconds > MAX_SECONDS + 0.05
  const length = text('secondsLong', { count: format(Math.floor(seconds * 100) / 100) })
  $('part').textContent = text(isTooLong ? 'partTooLong' : 'partLength', { length, limit: MAX_SECONDS })
  $('part').className = isTooLong ? 'error' : 'hint'
  const percent = (time) => `${(100 * Number(time)) / video.duration}%`
  Object.assign($('chosen').firstElementChild.style, {
    marginLeft: percent(from.value),
    width: percent(Number(to.value) - Number(from.value)),
  })
  from.setAttribute('aria-valuetext', format(Number(from.value)))
  to.setAttribute('aria-valuetext', format(Number(to.value)))
}
$('speed').addEventListener('change', () => {
  if (!address) return
  playAsChosen()
  describe()
})
$('crop').addEventListener('change', playAsChosen)

/** Shows the shape, from the middle of the picture as in the clip, and the speed. */
function playAsChosen() {
  const shape = $('crop').value.replace(':', ' / ') || `${video.videoWidth} / ${video.videoHeight}`
  video.style.setProperty('--shape', shape)
  video.playbackRate = Number($('speed').value || 1)
}

function show(time) {
  video.pause()
  video.currentTime = time
}

from.addEventListener('input', () => {
  from.value = Math.min(Number(from.value), Number(to.value) - LEAST_SECONDS)
  show(Number(from.value))
  write()
})
to.addEventListener('input', () => {
  to.value = Math.max(Number(to.value), Number(from.value) + LEAST_SECONDS)
  show(Number(to.value))
  write()
})
$('start-here').addEventListener('click', () => {
  from.value = Math.min(video.currentTime, Number(to.value) - LEAST_SECONDS)
  write()
})
$('end-here').addEventListener('click', () => {
  to.value = Math.max(video.currentTime, Number(from.value) + LEAST_SECONDS)
  write()
})
for (const [field, slider, whole] of [
  [start, from, () => 0],
  [end, to, () => video.duration],
]) {
  field.addEventListener('change', () => {
    const time = field.value.trim() === '' ? whole() : read(field.value)
    if (!address || time === undefined) return
    slider.value = time
    show(Number(slider.value))
    describe()
  })
}

// The part plays in a loop; `timeupdate` alone would pass its end by a quarter of a second.
function loop() {
  if (video.paused) return
  const [begin, stop] = [Number(from.value), Number(to.value)]
  if (video.currentTime >= stop || video.currentTime < begin - 0.05) video.currentTime = begin
  requestAnimationFrame(loop)
}
video.addEventListener('play', loop)
video.addEventListener('ended', () => {
  video.currentTime = Number(from.value)
  video.play().catch(() => {})
})
