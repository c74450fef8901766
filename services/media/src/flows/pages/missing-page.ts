import { html } from '@services/common/html'
import { htmlDocument } from './document.ts'
import { textPolicy } from './page-policy.ts'
import { clipPageCss, embedPageCss } from './styles.ts'

interface Missing {
  message: string
  siteName: string
  /** Ends with a slash. */
  siteUrl: string
}

export const missingPagePolicy = textPolicy({ css: clipPageCss, frameAncestors: "'none'" })
export const missingEmbedPolicy = textPolicy({ css: embedPageCss })

/** The page at the URL of an unknown or deleted clip. */
export const missingPage = ({ message, siteName, siteUrl }: Missing): string =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    noindex: true,
    styles: [clipPageCss],
    body: html`<header><a href="${siteUrl}">${siteName}</a></header>
<main>
<article>
<div class="about">
<h1>${message}</h1>
<a class="onward" href="${siteUrl}">Add a clip of your own</a>
</div>
</article>
</main>`,
  })

/** The same for a frame. */
export const missingEmbed = ({ message, siteName, siteUrl }: Missing): string =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    colorScheme: 'dark',
    noindex: true,
    styles: [embedPageCss],
    body: html`<div class="placeholder"><div class="notice"><strong>${message}</strong><a href="${siteUrl}" target="_blank" rel="noopener">${siteName}</a></div></div>`,
  })
