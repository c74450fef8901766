// The frame of pages for owners and administrators: the page kit of common under one policy, in the reader's language.
// Pages for visitors: document.ts.
import { type Html, html, jsonBlock } from '@services/common/html'
import { KIT_STYLES, PAGE_HEADERS, PAGE_POLICY, strictDocument } from '@services/common/pages/document'
import { button, hiddenFields } from '@services/common/pages/forms'
import type { FastifyReply } from 'fastify'
import type { Config } from '../../config.ts'
import { allows } from '../../core/tokens/scopes.ts'
import type { ApiToken } from '../../core/tokens/tokens.store.ts'
import { frameWords } from '../../words/frame.ts'
import type { Language } from '../../words/language.ts'
import { assets } from './document.ts'

type Site = Pick<Config['site'], 'name' | 'baseUrl' | 'filesBaseUrl' | 'filesRedirectUrl'>

export interface OwnerPage {
  language: Language
  /** Heading, and title of the document. */
  title: string
  /** Content below the heading. */
  body: Html
  /** Modules of assets/, by name. */
  scripts?: readonly string[]
}

/** A visitor who is signed in. */
export interface Visitor {
  language: Language
  token: ApiToken
  /** Proof that a form is one of a page of this session. */
  formToken: string
}

export interface SignedInPage extends Omit<OwnerPage, 'language'> {
  /** Path of the page's entry in the menu. */
  current?: '/library' | '/library/albums' | '/admin'
  /** Style sheets of assets/, by name. */
  styles?: readonly string[]
  /** Texts and values for the scripts, which read them from the element `page-data`. */
  data?: unknown
}

/** A page with one card, as that of the sign-in. */
export function sendOwnerPage(reply: FastifyReply, site: Site, page: OwnerPage): FastifyReply {
  const { language, title, body, scripts = [] } = page
  const document = strictDocument({
    ...{ language, title: `${title} · ${site.name}`, icon: `${site.baseUrl}/favicon.svg` },
    styles: KIT_STYLES.map(addressIn(site)),
    scripts: scripts.map(addressIn(site)),
    body: html`<header class="brand"><a href="${site.baseUrl}/">${site.name}</a></header>
<main>
<h1>${title}</h1>
${body}</main>`,
  })
  return send(reply, PAGE_POLICY, document)
}

/** A page as wide as the window, with the menu of a visitor who is signed in. */
export function sendSignedInPage(reply: FastifyReply, site: Site, visitor: Visitor, page: SignedInPage): FastifyReply {
  const { title, body, styles = [], scripts = [], data } = page
  const document = strictDocument({
    ...{ language: visitor.language, title: `${title} · ${site.name}`, icon: `${site.baseUrl}/favicon.svg` },
    styles: [...KIT_STYLES, 'owner.css', ...styles].map(addressIn(site)),
    scripts: scripts.map(addressIn(site)),
    body: html`${menu(site, visitor, page)}
<main class="desk" id="main">
<h1 tabindex="-1" dir="auto">${title}</h1>
${body}</main>
<div class="toasts"><div id="done" role="status"></div><div id="failed" role="alert"></div></div>
${data !== undefined && jsonBlock('page-data', data)}`,
  })
  return send(reply, policyOf(site), document)
}

function menu({ name, baseUrl }: Site, { language, token, formToken }: Visitor, { current }: SignedInPage): Html {
  const words = frameWords[language]
  const entry = (path: string, label: string) =>
    html`<a href="${baseUrl}${path}"${path === current && html` aria-current="page"`}>${label}</a>`
  return html`<header class="menu">
<a class="skip" href="#main">${words.skip}</a>
<strong>${name}</strong>
<nav aria-label="${words.menu}">${entry('/', words.home)}${entry('/library', words.library)}${entry('/library/albums', words.albums)}${allows(token, 'admin') && entry('/admin', words.admin)}</nav>
<form method="post" action="${baseUrl}/session/end">${hiddenFields({ form_token: formToken })}<a class="who" href="${baseUrl}/session" dir="auto">${token.name}</a>${button({ label: words.signOut, kind: 'quiet' })}</form>
</header>`
}

/** Pictures and videos come from the files' own host too, and the player is a frame of this service. */
function policyOf({ filesBaseUrl, filesRedirectUrl }: Site): string {
  const origins = [filesBaseUrl, filesRedirectUrl].filter((url) => url !== undefined).map((url) => new URL(url).origin)
  const files = ["'self'", ...new Set(origins)].join(' ')
  return `${PAGE_POLICY.replace("img-src 'self'", `img-src ${files}`)}; media-src ${files}; frame-src 'self'`
}

const addressIn =
  ({ baseUrl }: Site) =>
  (name: string): string =>
    `${baseUrl}/assets/${assets.address(name)}`

const send = (reply: FastifyReply, policy: string, document: string): FastifyReply =>
  reply
    .headers({ ...PAGE_HEADERS, 'content-security-policy': policy })
    .headers({ 'cache-control': 'private, no-store', vary: 'Accept-Language' })
    .type('text/html; charset=utf-8')
    .send(document)
