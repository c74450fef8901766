// The frame of every page: the operator's name and logo, one card, a link to help. The policy is that of
// @services/common/pages/document: files of this service, nothing inline.
import { type Html, html } from '@services/common/html'
import { KIT_STYLES, PAGE_HEADERS, PAGE_POLICY, strictDocument } from '@services/common/pages/document'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import type { Language } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { externalBase } from './mail-context.ts'
import { ASSETS_PATH, LOGO_PATH, pageAssets } from './page-files.ts'

export interface ShownPage {
  language: Language
  /** Heading, and title of the document. */
  title: string
  /** Content below the heading. */
  body: Html
  /** Modules of assets/, by name. */
  scripts?: readonly string[]
  head?: Html
  /** True for pages with tables. */
  isWide?: boolean
  /** True for a page whose own address is a secret, which links to this service must not reveal either. */
  hidesAddress?: boolean
  /** Addresses of applications that the page loads out of sight. */
  frames?: readonly string[]
  /** True for a page whose form leads to an application, which may redirect the browser to any origin. */
  postsElsewhere?: boolean
}

/** Path of this service in the addresses that browsers use, without a slash at its end. */
export const publicPath = (request: FastifyRequest, config: Pick<Config, 'server'>): string =>
  new URL(externalBase(request, config)).pathname.replace(/\/$/, '')

/** Sends a page. */
export function showPage(
  config: Pick<Config, 'pages' | 'server'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { language, title, body, scripts = [], head, isWide = false, hidesAddress = false, ...page }: ShownPage,
): FastifyReply {
  const { name, logo, supportUrl } = config.pages
  const { frames = [] } = page
  const origins = [...new Set(frames.map((address) => new URL(address).origin))]
  const path = publicPath(request, config)
  const address = (asset: string) => `${path}${ASSETS_PATH}${pageAssets(config).address(asset)}`
  const icon = logo === undefined ? undefined : `${path}${LOGO_PATH}`
  const inside = html`<header class="brand">${icon && html`<img src="${icon}" alt="">`}<span>${name}</span></header>
<main${isWide && html` class="wide"`}>
<h1>${title}</h1>
${body}${frames.map(frame)}</main>
<footer class="foot">${supportUrl && html`<a href="${supportUrl}">${frameWords[language].help}</a>`}</footer>`
  const document = strictDocument({
    ...{ language, icon, head, body: inside, title: `${title} · ${name}` },
    styles: [...KIT_STYLES, 'brand.css'].map(address),
    scripts: scripts.map(address),
  })
  const headers = {
    ...PAGE_HEADERS,
    ...(hidesAddress && { 'referrer-policy': 'no-referrer' }),
    ...(frames.length > 0 && { 'content-security-policy': `${PAGE_POLICY}; frame-src ${origins.join(' ')}` }),
    ...(page.postsElsewhere && {
      'content-security-policy': PAGE_POLICY.replace("form-action 'self'", 'form-action *'),
    }),
  }
  return reply.headers(headers).type('text/html; charset=utf-8').send(document)
}

/** A frame out of sight, which cannot lead the page away. */
const frame = (address: string) =>
  html`<iframe src="${address}" hidden sandbox="allow-scripts allow-same-origin" referrerpolicy="no-referrer"></iframe>\n`
