import { html } from '@services/common/html'
import { htmlDocument } from './document.ts'
import { textPolicy } from './page-policy.ts'
import { clipPageCss, embedPageCss } from './styles.ts'

interface Missing {
  /** Why there is nothing to see. */
  message: string
  siteName: string
  /** Ends with a slash. */
  siteUrl: string
}

/** The Content-Security-Policies that go with `missingPage` and `missingEmbed`. */
export const missingPagePolicy = textPolicy({ css: clipPageCss, frameAncestors: "'none'" })
export const missingEmbedPolicy = textPolicy({ css: embedPageCss })

/** What a person sees at the address of a clip that is not there, or no longer. */
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

/** The same in somebody's frame. */
export const missingEmbed = ({ message, siteName, siteUrl }: Missing): string =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    siteUrl,
    colorScheme: 'dark',
    noindex: true,
    styles: [embedPageCss],
    body: html`<div class="placeholder"><div class="notice"><strong>${message}</strong><a href="${siteUrl}" target="_blank" rel="noopener">${siteName}</a></div></div>`,
  })
