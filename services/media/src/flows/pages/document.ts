import { type Html, html, raw, toText } from '@services/common/html'
import { iconUrl } from './icon.ts'

interface Document {
  title: string
  /** Base address with a slash at its end: where the icon is. */
  siteUrl: string
  /** Told to the browser before it has read a style: 'dark' where the page is dark for everybody. */
  colorScheme?: 'light dark' | 'dark'
  /** Also where the address is only for people who have it. */
  noindex?: boolean
  /** Links, scripts and what else stands in a head, each on a line of its own. */
  head?: Html
  /** Each is an element of its own, as the policy of the page has it; a later one wins. */
  styles?: readonly (string | undefined)[]
  body: Html
}

/** A whole page, from its first line to its last. */
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
