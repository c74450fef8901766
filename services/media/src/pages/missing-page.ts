import { html, raw, toText } from './html.ts'
import { textPolicy } from './page-policy.ts'
import { clipPageCss, embedPageCss } from './styles.ts'

interface Missing {
  /** Why there is nothing to see. */
  message: string
  siteName: string
  siteUrl: string
}

/** The Content-Security-Policies that go with `missingPage` and `missingEmbed`. */
export const missingPagePolicy = textPolicy({ css: clipPageCss, frameAncestors: "'none'" })
export const missingEmbedPolicy = textPolicy({ css: embedPageCss, frameAncestors: '*' })

/** What a person sees at the address of a clip that is not there, or no longer. */
export function missingPage({ message, siteName, siteUrl }: Missing): string {
  return toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${message} · ${siteName}</title>
<style>${raw(clipPageCss)}</style>
</head>
<body>
<header><a href="${siteUrl}">${siteName}</a></header>
<main>
<article>
<div class="about">
<h1>${message}</h1>
</div>
</article>
</main>
</body>
</html>
`)
}

/** The same in somebody's frame. */
export function missingEmbed({ message, siteName }: Missing): string {
  return toText(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark">
<meta name="robots" content="noindex">
<title>${message} · ${siteName}</title>
<style>${raw(embedPageCss)}</style>
</head>
<body>
<div class="placeholder"><div class="notice"><strong>${message}</strong></div></div>
</body>
</html>
`)
}
