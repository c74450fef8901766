import { htmlDocument } from './document.ts'
import { html } from './html.ts'
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
export const missingPage = ({ message, siteName, siteUrl }: Missing): string =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    noindex: true,
    styles: [clipPageCss],
    body: html`<header><a href="${siteUrl}">${siteName}</a></header>
<main>
<article>
<div class="about">
<h1>${message}</h1>
</div>
</article>
</main>`,
  })

/** The same in somebody's frame. */
export const missingEmbed = ({ message, siteName }: Missing): string =>
  htmlDocument({
    title: `${message} · ${siteName}`,
    colorScheme: 'dark',
    noindex: true,
    styles: [embedPageCss],
    body: html`<div class="placeholder"><div class="notice"><strong>${message}</strong></div></div>`,
  })
