import { type Html, html, raw, toText } from '@services/common/html'
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
