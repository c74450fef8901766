import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, html, raw, toText } from '@services/common/html'
import type { Config } from '../../config.ts'
import { iconUrl } from './icon.ts'

interface Document {
  title: string
  /** Base URL with a slash at its end. */
  siteUrl: string
  /** Read by the browser before the styles; 'dark' for a page that is always dark. */
  colorScheme?: 'light dark' | 'dark'
  noindex?: boolean
  /** Links, scripts and meta tags. */
  head?: Html
  /** Each becomes an element, because the policy allows each by its hash. */
  styles?: readonly (string | undefined)[]
  body: Html
}

export const htmlDocument = ({
  title,
  siteUrl,
  colorScheme = 'light dark',
  noindex,
  head,
  styles = [],
  body,
}: Document): string =>
  toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${colorScheme}">
${noindex && html`<meta name="robots" content="noindex">\n`}<title>${title}</title>
<link rel="icon" href="${iconUrl(siteUrl)}" type="image/svg+xml">
${head}${styles.map((css) => css && html`<style>${raw(css)}</style>\n`)}</head>
<body>
${body}
</body>
</html>
`)

/** Reads a script; its path changes with its text, so that no cache serves an old one. */
export function readScript(name: string): { text: string; path: string } {
  const text = readFileSync(new URL(`assets/${name}`, import.meta.url), 'utf8')
  return { text, path: `/${name}?v=${createHash('sha256').update(text).digest('hex').slice(0, 12)}` }
}

type Site = Pick<Config['site'], 'name' | 'baseUrl'>

export const siteHeader = ({ name, baseUrl }: Site): Html =>
  html`<header class="bar"><a href="${baseUrl}/">${name}</a><nav aria-label="Documentation"><a href="${baseUrl}/docs">API</a><a href="${baseUrl}/docs/errors">Errors</a></nav></header>`
