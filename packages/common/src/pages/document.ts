// Pages for people. `strictDocument` is under one policy: styles and scripts are files of the service itself, nothing
// is inline and nothing comes from another host. Parts: forms.ts, table.ts, notices.ts; files: assets.ts, assets/.
import { type Html, html, toText } from '../html.ts'
import { assetType } from './assets.ts'

/** Content-Security-Policy of all pages (contract/auth-pages.md 2). A form leads to this service alone. */
export const PAGE_POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"],
].join('; ')

/**
 * Headers of all pages. Under `no-referrer` a browser sends `Origin: null` with the forms of our own pages.
 */
export const PAGE_HEADERS = {
  'content-security-policy': PAGE_POLICY,
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** Folder of the style sheets of all parts: light and dark, from 320 px. */
export const KIT_FILES = new URL('assets/', import.meta.url)
export const KIT_STYLES = ['kit.css', 'forms.css'] as const

export interface Document {
  language: string
  title: string
  /** Read by the browser before the styles. */
  colorScheme?: 'light dark' | 'dark'
  /** Whether search engines may list the page. */
  isIndexed?: boolean
  /** Address of the icon; absent: none is requested. */
  icon?: string | undefined
  /** Further tags of the head. */
  head?: Html | undefined
  /** Inside of `body`, with one `main` and one `h1`. */
  body: Html
}

/** A document without a policy: the caller sets the one that its head and body need. */
export function htmlDocument(document: Document): string {
  const { language, title, colorScheme = 'light dark', isIndexed = false, icon = 'data:,', head, body } = document
  const iconType = assetType(icon)
  return toText(html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${colorScheme}">
${!isIndexed && html`<meta name="robots" content="noindex">\n`}<title>${title}</title>
<link rel="icon" href="${icon}"${iconType && html` type="${iconType}"`}>
${head}</head>
<body>
${body}
</body>
</html>
`)
}

export interface StrictDocument extends Document {
  /** Addresses of the style sheets, KIT_STYLES first. */
  styles: readonly string[]
  /** Addresses of modules. */
  scripts?: readonly string[]
}

/** A document for PAGE_POLICY. */
export const strictDocument = ({ styles, scripts = [], head, ...document }: StrictDocument): string =>
  htmlDocument({
    ...document,
    head: html`${styles.map((href) => html`<link rel="stylesheet" href="${href}">\n`)}${scripts.map((src) => html`<script type="module" src="${src}"></script>\n`)}${head}`,
  })
