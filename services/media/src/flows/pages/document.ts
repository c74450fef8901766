import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { type Html, html, raw, toText } from '@services/common/html'
import type { Config } from '../../config.ts'

export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d5fd6"/><path d="M12.5 9.6v12.8a1 1 0 0 0 1.5.9l10.4-6.4a1 1 0 0 0 0-1.8L14 8.7a1 1 0 0 0-1.5.9z" fill="#fff"/></svg>`

/** Browsers without a link to the icon request the second path. */
export const ICON_PATHS = ['/favicon.svg', '/favicon.ico'] as const

/** A page and its Content-Security-Policy. */
export interface Page {
  html: string
  policy: string
}

interface Document {
  title: string
  /** Base URL with a slash at its end. */
  siteUrl: string
  /** True for a page that any page may frame; it is always dark. */
  isFramed?: boolean
  noindex?: boolean
  /** Links, scripts and meta tags. */
  head?: Html
  style: Style
  /** A second stylesheet, which may hold pictures as data: URLs. */
  placeholder?: string | undefined
  body: Html
  /** URLs of pictures and videos, and of their redirects, which the policy covers, too. */
  files?: readonly (string | undefined)[]
  /**
   * URLs of scripts without their queries, which a policy cannot have. A slash at the end stands for all in a folder.
   */
  scripts?: readonly string[]
  /** Only target of forms, without its query, which a policy cannot have. */
  formTarget?: string
  /** Allows scripts to call this service. */
  connects?: boolean
  /** Allows scripts to show a file of the user. */
  showsLocal?: boolean
}

export function htmlDocument(document: Document): Page {
  const { title, siteUrl, isFramed, noindex, head, body } = document
  const styles = [document.style, ...(document.placeholder ? [styleOf(document.placeholder)] : [])]
  // Read by the browser before the styles.
  const colorScheme = isFramed ? 'dark' : 'light dark'
  const markup = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${colorScheme}">
${noindex && html`<meta name="robots" content="noindex">\n`}<title>${title}</title>
<link rel="icon" href="${iconUrl(siteUrl)}" type="image/svg+xml">
${head}${styles.map(({ css }) => html`<style>${raw(css)}</style>\n`)}</head>
<body>
${body}
</body>
</html>
`
  return { html: toText(markup), policy: policyOf(document, styles) }
}

/**
 * Allows our stylesheets, and the named script, pictures and videos. Injected markup could not run, load, submit or
 * restyle anything. A framed page has no `frame-ancestors`. `*` would allow less, because it excludes the file:, app:
 * and capacitor: pages of desktop and mobile applications (CSP 3, 6.7.2.8).
 */
function policyOf(document: Document, styles: Style[]): string {
  const { siteUrl, isFramed, placeholder, files = [], scripts = [], formTarget, connects, showsLocal } = document
  const origins = [...new Set(files.filter((url) => url !== undefined).map((url) => new URL(url).origin))]
  return [
    "default-src 'none'",
    ['style-src', ...styles.map(({ source }) => source)].join(' '),
    ['img-src', iconUrl(siteUrl), ...origins, ...(placeholder ? ['data:'] : [])].join(' '),
    ...(origins.length > 0 ? [['media-src', ...origins, ...(showsLocal ? ['blob:'] : [])].join(' ')] : []),
    ...(scripts.length > 0 ? [['script-src', ...scripts].join(' ')] : []),
    ...(connects ? ["connect-src 'self'"] : []),
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

/** A script; `path` changes with its text and with the modules that it imports, so that no cache serves an old one. */
export interface Script {
  name: string
  text: string
  path: string
}

export function readScript(name: string): Script {
  const source = readFileSync(new URL(`assets/${name}`, import.meta.url), 'utf8')
  const text = source.replace(/(?<= from ')\.\/[\w/-]+\.js(?=')/g, (module) => `${module}?${queryOf(name, module)}`)
  return { name, text, path: `/${name}?v=${createHash('sha256').update(text).digest('hex').slice(0, 12)}` }
}

const queryOf = (importer: string, module: string) =>
  readScript(posix.join(posix.dirname(importer), module)).path.split('?')[1]

export const readScripts = (folder: string): Script[] =>
  readdirSync(new URL(`assets/${folder}`, import.meta.url)).map((name) => readScript(`${folder}/${name}`))

export type Site = Pick<Config['site'], 'name' | 'baseUrl'>

export const siteHeader = ({ name, baseUrl }: Site): Html =>
  html`<header class="bar"><a href="${baseUrl}/">${name}</a><nav aria-label="Documentation"><a href="${baseUrl}/docs">API</a><a href="${baseUrl}/docs/errors">Errors</a></nav></header>`
