// Page with one button, between a link and its effect: scanners, prefetches and strangers' links open addresses but
// press no buttons. It works without scripts; callers give the texts.
import { createHash } from 'node:crypto'
import { escapeHtml } from '@services/common/html'

const STYLE = `:root{color-scheme:light dark}body{margin:0;min-height:100vh;display:grid;place-items:center;background:#f3f5f8;color:#16202c;font:16px/1.5 system-ui,sans-serif}main{background:#fff;padding:2.5rem;border-radius:12px;max-width:22rem;margin:1rem;text-align:center}h1{font-size:1.4rem;margin:0 0 .5rem}button{font:inherit;font-weight:600;color:#fff;background:#2457d6;border:0;border-radius:8px;padding:.8rem 1.6rem;margin-top:1rem;cursor:pointer}button:disabled{opacity:.5}@media(prefers-color-scheme:dark){body{background:#111418;color:#e8ecf1}main{background:#1b2027}}`

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

const sourceOf = (content: string) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`

/** Policy of the page: only its own content, no framing. A form-action would also restrict the redirect to the site. */
export const BUTTON_PAGE_CSP = `default-src 'none'; style-src ${sourceOf(STYLE)}; script-src ${sourceOf(SCRIPT)}; frame-ancestors 'none'; base-uri 'none'`

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
  return `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escapeHtml(heading)}</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(heading)}</h1><p>${escapeHtml(text)}</p><form method="post" action="${escapeHtml(action)}">${inputs.join('')}<button type="submit">${escapeHtml(button)}</button></form></main><script>${SCRIPT}</script></body></html>
`
}
