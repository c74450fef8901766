import type { ErrorCatalogue } from '@services/common/errors'
import { html } from '@services/common/html'
import { mediaDocument, type Page, type Site, siteHeader, styleOf } from './document.ts'
import { sitePageCss } from './styles.ts'

const style = styleOf(`${sitePageCss}
dl { margin: 1rem 0 0 }
dt { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding-top: .75rem; border-top: 1px solid var(--line); font-weight: 600; scroll-margin-top: 1rem }
dt span { color: var(--quiet); font-weight: 400 }
dt:target code { padding: .125rem .375rem; border-radius: 6px; background: var(--accent); color: var(--card) }
dd { margin: 0 0 .75rem; color: var(--quiet); overflow-wrap: anywhere }
`)

export function errorsPage(site: Site, catalogue: ErrorCatalogue): Page {
  const rows = Object.entries(catalogue).map(
    ([code, { status, message }]) =>
      html`<dt id="${code}"><code>${code}</code><span>${status}</span></dt>\n<dd>${message}</dd>\n`,
  )
  return mediaDocument({
    title: `Errors · ${site.name}`,
    siteUrl: `${site.baseUrl}/`,
    isIndexed: true,
    style,
    body: html`${siteHeader(site)}
<main>
<article>
<div class="about">
<h1>Errors</h1>
<p class="hint">Every code that <code>error.code</code> of an answer can have, with its HTTP status.</p>
<dl>
${rows}</dl>
</div>
</article>
</main>`,
  })
}
