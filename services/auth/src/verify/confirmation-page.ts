import { createHash } from 'node:crypto'
import { ENGLISH } from '../mail/built-in/words.en.ts'
import { WORDS } from '../mail/built-in/words.ts'
import { escapeHtml } from '../mail/template/escape.ts'

const STYLE = `:root{color-scheme:light dark}body{margin:0;min-height:100vh;display:grid;place-items:center;background:#f3f5f8;color:#16202c;font:16px/1.5 system-ui,sans-serif}main{background:#fff;padding:2.5rem;border-radius:12px;max-width:22rem;margin:1rem;text-align:center}h1{font-size:1.4rem;margin:0 0 .5rem}button{font:inherit;font-weight:600;color:#fff;background:#2457d6;border:0;border-radius:8px;padding:.8rem 1.6rem;margin-top:1rem;cursor:pointer}@media(prefers-color-scheme:dark){body{background:#111418;color:#e8ecf1}main{background:#1b2027}}`

/**
 * A browser shows the answer to the last press: of a double click the first one spends the link and the second one would be
 * shown that it has expired. A page that is come back to, or kept, has its button again.
 */
const SCRIPT = `const press = disabled => () => { document.querySelector('button').disabled = disabled }
addEventListener('submit', press(true))
addEventListener('pageshow', press(false))`

const sourceOf = (content: string) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`

/** No content but its own, not to be framed. No form-action: it would also bind the redirect to the site. */
export const CONFIRMATION_PAGE_CSP = `default-src 'none'; style-src ${sourceOf(STYLE)}; script-src ${sourceOf(SCRIPT)}; frame-ancestors 'none'; base-uri 'none'`

export interface ConfirmationPage {
  /** Where the form posts to: the link's own address, relative. */
  action: string
  /** `type` of the link. */
  type: string
  /** Of the mails; a language without words of its own gets English. */
  locale: string
  siteUrl: string
}

/**
 * The page between a mail link and its effect (AUTH_MAILER_LINK_CONFIRMATION_PAGE): scanners open links but press no
 * buttons. It says what the button does, which posts to the same address, with scripts or without.
 */
export function confirmationPage({ action, type, locale, siteUrl }: ConfirmationPage): string {
  const language = Object.hasOwn(WORDS, locale) ? locale : 'en'
  const { pages } = WORDS[language] ?? ENGLISH
  const { heading, text, button } = Object.hasOwn(pages, type) ? pages[type as keyof typeof pages] : pages.email
  const site = escapeHtml(new URL(siteUrl).host || siteUrl)
  return `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${heading}</title><style>${STYLE}</style></head>
<body><main><h1>${heading}</h1><p>${text.replace('{site}', () => site)}</p><form method="post" action="${escapeHtml(action)}"><button type="submit">${button}</button></form></main><script>${SCRIPT}</script></body></html>
`
}
