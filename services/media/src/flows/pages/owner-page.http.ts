// The frame of pages for owners and administrators: the page kit of common under one policy, in the reader's language.
// Pages for visitors: document.ts.
import { type Html, html } from '@services/common/html'
import { KIT_STYLES, PAGE_HEADERS, strictDocument } from '@services/common/pages/document'
import type { FastifyReply } from 'fastify'
import type { Language } from '../../words/language.ts'
import { assets, type Site } from './document.ts'

export interface OwnerPage {
  language: Language
  /** Heading, and title of the document. */
  title: string
  /** Content below the heading. */
  body: Html
  /** Modules of assets/, by name. */
  scripts?: readonly string[]
}

export function sendOwnerPage(reply: FastifyReply, site: Site, page: OwnerPage): FastifyReply {
  const { language, title, body, scripts = [] } = page
  const address = (name: string) => `${site.baseUrl}/assets/${assets.address(name)}`
  const document = strictDocument({
    ...{ language, title: `${title} · ${site.name}`, icon: `${site.baseUrl}/favicon.svg` },
    styles: KIT_STYLES.map(address),
    scripts: scripts.map(address),
    body: html`<header class="brand"><a href="${site.baseUrl}/">${site.name}</a></header>
<main>
<h1>${title}</h1>
${body}</main>`,
  })
  return reply
    .headers({ ...PAGE_HEADERS, 'cache-control': 'private, no-store', vary: 'Accept-Language' })
    .type('text/html; charset=utf-8')
    .send(document)
}
