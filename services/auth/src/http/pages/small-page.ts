// The layout of small pages, and their policy: nothing is loaded, and only their own style and script count.
import { createHash } from 'node:crypto'
import { escapeHtml } from '@services/common/html'
import type { FastifyReply } from 'fastify'

const STYLE = `:root{color-scheme:light dark}body{margin:0;min-height:100vh;display:grid;place-items:center;background:#f3f5f8;color:#16202c;font:16px/1.5 system-ui,sans-serif}main{background:#fff;padding:2.5rem;border-radius:12px;max-width:22rem;margin:1rem;text-align:center}h1{font-size:1.4rem;margin:0 0 .5rem}button,a{display:inline-block;font:inherit;font-weight:600;color:#fff;background:#2457d6;border:0;border-radius:8px;padding:.8rem 1.6rem;margin-top:1rem;text-decoration:none;cursor:pointer}button:disabled{opacity:.5}@media(prefers-color-scheme:dark){body{background:#111418;color:#e8ecf1}main{background:#1b2027}}`

export interface SmallPage {
  language: string
  /** Plain text, like `text`. */
  heading: string
  text: string
  /** HTML below the text. */
  content: string
  script: string
}

export function smallPage({ language, heading, text, content, script }: SmallPage): string {
  return `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escapeHtml(heading)}</title><style>${STYLE}</style></head>
<body><main><h1>${escapeHtml(heading)}</h1><p>${escapeHtml(text)}</p>${content}</main><script>${script}</script></body></html>
`
}

const sourceOf = (content: string) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`

/** Content-Security-Policy of a page with this script. A form-action would also restrict the redirect to the site. */
export const smallPagePolicy = (script: string): string =>
  `default-src 'none'; style-src ${sourceOf(STYLE)}; script-src ${sourceOf(script)}; frame-ancestors 'none'; base-uri 'none'`

export const sendPage = (reply: FastifyReply, page: string, policy: string): FastifyReply =>
  reply.header('content-security-policy', policy).type('text/html; charset=utf-8').send(page)
