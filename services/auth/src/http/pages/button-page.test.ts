import { readFileSync } from 'node:fs'
import { toText } from '@services/common/html'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { BUTTON_SCRIPT, buttonPage } from './button-page.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const SCRIPT = readFileSync(new URL(`assets/${BUTTON_SCRIPT}`, import.meta.url), 'utf8')

const words = { language: 'en' as const, heading: 'Heading', text: 'Text', button: 'Go on', action: '?' }

/** Stand-in for a browser page: the events of its window, and its button. */
function open() {
  const button = { disabled: false }
  const window = new EventTarget()
  const document = { querySelector: (selector: string) => (selector === 'main button' ? button : null) }
  new Function('addEventListener', 'document', SCRIPT)(window.addEventListener.bind(window), document)
  const happens = (event: string) => window.dispatchEvent(new Event(event))
  happens('pageshow')
  return { button, happens }
}

test('the button of a page works without scripts from the beginning', () => {
  expect(toText(buttonPage(words).body)).toMatch(/<button type="submit"[^>]*>Go on<\/button>/)
})

test.each([
  ['has just been opened', () => open()],
  [
    'has just come to the front, as of a double click whose first click closed a window above',
    () => {
      const page = open()
      vi.advanceTimersByTime(10_000)
      expect(page.button.disabled).toBe(false)
      page.happens('focus')
      return page
    },
  ],
])('where scripts run the button waits half a second in a window that %s', (_name, make) => {
  const { button } = make()
  vi.advanceTimersByTime(499)
  expect(button.disabled).toBe(true)
  vi.advanceTimersByTime(1)
  expect(button.disabled).toBe(false)
})

// The browser shows the answer to the last press, and only the first one has an effect.
test('a button is pressed once, until its page is come back to', () => {
  const { button, happens } = open()
  vi.advanceTimersByTime(500)
  happens('submit')
  expect(button.disabled).toBe(true)
  happens('focus')
  vi.advanceTimersByTime(500)
  expect(button.disabled).toBe(true)
  happens('pageshow')
  vi.advanceTimersByTime(500)
  expect(button.disabled).toBe(false)
})
