// A stream of events that lasts as long as the page is seen. A browser gives a refused stream up for good, so it is
// opened again here, after a pause that grows.
import { address } from './api.js'
import { text } from './page-data.js'
import { toast } from './toast.js'

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

/**
 * Follows a stream; returns a function that ends it. `opened` gets true when the stream was open
 * before, so that events may be missing.
 * @param {string} path @param {Record<string, (data: any) => void>} acts Acts by the name of the event.
 * @param {(isAgain: boolean) => void} [opened]
 */
export function followEvents(path, acts, opened) {
  /** @type {EventSource | undefined} */
  let source
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let pause = FIRST_PAUSE_MS
  let wasOpen = false
  const close = () => {
    clearTimeout(timer)
    source?.close()
  }
  const open = () => {
    close()
    const stream = new EventSource(address(path))
    source = stream
    for (const [type, act] of Object.entries(acts)) stream.addEventListener(type, ({ data }) => act(JSON.parse(data)))
    stream.addEventListener('open', () => {
      pause = FIRST_PAUSE_MS
      opened?.(wasOpen)
      wasOpen = true
    })
    stream.addEventListener('error', () => {
      if (stream.readyState !== EventSource.CLOSED) return
      if (pause === FIRST_PAUSE_MS) toast(text('live'))
      timer = setTimeout(open, pause)
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    })
  }
  const look = () => (document.hidden ? close() : open())
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    close()
  }
}
