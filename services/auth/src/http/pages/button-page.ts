// Page with one button, between a link and its effect: scanners, prefetches and strangers' links open addresses but
// press no buttons. It works without scripts; callers give the texts.
import { escapeHtml } from '@services/common/html'
import { smallPage, smallPagePolicy } from './small-page.ts'

/**
 * A browser shows the answer to the last press: the second press of a double click would show that the link has
 * expired. On return to the page the button works again. It waits half a second after its window appears. A double
 * click that closes a window above with its first click would otherwise press it unread.
 */
const SCRIPT = `const button = document.querySelector('button')
let isPressed = false
let timer
const wait = () => {
  button.disabled = true
  clearTimeout(timer)
  timer = setTimeout(() => { button.disabled = isPressed }, 500)
}
addEventListener('submit', () => { isPressed = button.disabled = true })
addEventListener('pageshow', () => { isPressed = false; wait() })
addEventListener('focus', wait)`

export const BUTTON_PAGE_CSP = smallPagePolicy(SCRIPT)

export interface ButtonPage {
  language: string
  /** Plain text, like the text and the button. */
  heading: string
  text: string
  button: string
  /** Target of the form, relative to the page. */
  action: string
  fields?: Record<string, string>
}

export function buttonPage({ language, heading, text, button, action, fields = {} }: ButtonPage): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  )
  const form = `<form method="post" action="${escapeHtml(action)}">${inputs.join('')}<button type="submit">${escapeHtml(button)}</button></form>`
  return smallPage({ language, heading, text, content: form, script: SCRIPT })
}
