import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, html, raw } from '@services/common/html'
import { openAssets } from '@services/common/pages/assets'
import { type Document, htmlDocument, KIT_FILES } from '@services/common/pages/document'
import type { Config } from '../../config.ts'
import type { Language } from '../../words/language.ts'

export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d5fd6"/><path d="M12.5 9.6v12.8a1 1 0 0 0 1.5.9l10.4-6.4a1 1 0 0 0 0-1.8L14 8.7a1 1 0 0 0-1.5.9z" fill="#fff"/></svg>`

/** Modules of packages for browsers; Node resolves lit-html to a variant of its own. */
const moduleOf = (name: 'lit-html' | 'thumbhash', file: string) => (): string =>
  readFileSync(new URL(file, import.meta.resolve(name)), 'utf8').replace(/\n\/\/# sourceMappingURL=.*/, '')

/** Files of pages, served below /assets/. */
export const assets = openAssets([KIT_FILES, new URL('assets/', import.meta.url)], {
  ...{ 'favicon.svg': () => ICON, 'lit.js': moduleOf('lit-html', '../lit-html.js') },
  'thumbhash.js': moduleOf('thumbhash', 'thumbhash.js'),
})

/** A page and its Content-Security-Policy. */
export interface Page {
  html: string
  policy: string
}

interface MediaDocument extends Pick<Document, 'title' | 'isIndexed' | 'body'> {
  /** English without it. */
  language?: Language
  /** Base URL with a slash at its end. */
  siteUrl: string
  /** True for a page that any page may frame; it is always dark. */
  isFramed?: boolean
  /** Links, scripts and meta tags. */
  head?: Html
  style: Style
  /** A second stylesheet, which may hold pictures as data: URLs. */
  placeholder?: string | undefined
  /** URLs of pictures and videos, and of their redirects, which the policy covers, too. */
  files?: readonly (string | undefined)[]
  /** Modules of assets/, by name. */
  modules?: readonly string[]
  /**
   * URLs of other scripts that the page loads, without their queries, which a policy cannot have. A slash at the end
   * stands for all in a folder.
   */
  scripts?: readonly string[]
  /** Only target of forms, without its query, which a policy cannot have. */
  formTarget?: string
  /** Allows scripts to call this service, and to read its files where those have another host. */
  connects?: 'self' | 'files'
  /** Allows scripts to show a file of the user. */
  showsLocal?: boolean
}

/** A page whose stylesheet is in its head: a visitor sees it after one request, and most visitors see only one. */
export function mediaDocument(document: MediaDocument): Page {
  const { language = 'en', title, siteUrl, isFramed, isIndexed, head, modules = [], body } = document
  const styles = [document.style, ...(document.placeholder ? [styleOf(document.placeholder)] : [])]
  const markup = htmlDocument({
    ...{ language, title, isIndexed, body },
    colorScheme: isFramed ? 'dark' : 'light dark',
    icon: iconUrl(siteUrl),
    head: html`${head}${modules.map((name) => html`<script type="module" src="${siteUrl}assets/${assets.address(name)}"></script>\n`)}${styles.map(({ css }) => html`<style>${raw(css)}</style>\n`)}`,
  })
  return { html: markup, policy: policyOf(document, styles) }
}

/**
 * Allows our stylesheets, and the named script, pictures and videos. Injected markup could not run, load, submit or
 * restyle anything. A framed page has no `frame-ancestors`. `*` would allow less, because it excludes the file:, app:
 * and capacitor: pages of desktop and mobile applications (CSP 3, 6.7.2.8).
 */
function policyOf(document: MediaDocument, styles: Style[]): string {
  const { siteUrl, isFramed, placeholder, files = [], modules = [], formTarget, connects, showsLocal } = document
  const scripts = [...modules.map((name) => `${siteUrl}assets/${name}`), ...(document.scripts ?? [])]
  const origins = [...new Set(files.filter((url) => url !== undefined).map((url) => new URL(url).origin))]
  return [
    "default-src 'none'",
    ['style-src', ...styles.map(({ source }) => source)].join(' '),
    ['img-src', iconUrl(siteUrl), ...origins, ...(placeholder ? ['data:'] : [])].join(' '),
    ...(origins.length > 0 ? [['media-src', ...origins, ...(showsLocal ? ['blob:'] : [])].join(' ')] : []),
    ...(scripts.length > 0 ? [['script-src', ...scripts].join(' ')] : []),
    ...(connects ? [["connect-src 'self'", ...(connects === 'files' ? origins : [])].join(' ')] : []),
    "base-uri 'none'",
    `form-action ${formTarget ?? "'none'"}`,
    ...(isFramed ? [] : ["frame-ancestors 'none'"]),
  ].join('; ')
}

const iconUrl = (siteUrl: string): string => `${siteUrl}favicon.svg`

/** An inline stylesheet; the policy allows its text by the hash. */
export interface Style {
  css: string
  source: string
}

export const styleOf = (css: string): Style => ({
  css,
  source: `'sha256-${createHash('sha256').update(css).digest('base64')}'`,
})

export type Site = Pick<Config['site'], 'name' | 'baseUrl'>

export const siteHeader = ({ name, baseUrl }: Site, words = { documents: 'Documentation', errors: 'Errors' }): Html =>
  html`<header class="bar"><a href="${baseUrl}/">${name}</a><nav aria-label="${words.documents}"><a href="${baseUrl}/docs">API</a><a href="${baseUrl}/docs/errors">${words.errors}</a></nav></header>`
