import { html } from '@services/common/html'
import { mediaDocument, type Page, type Site, siteHeader, styleOf } from './document.ts'
import { sitePageCss } from './styles.ts'

const style = styleOf(`${sitePageCss}
#delete { min-height: 2.75rem; margin-top: 1rem; padding: .5rem 1.125rem; border: 0; border-radius: 10px; background: #b3261e; color: #fff; font: inherit; font-weight: 600; cursor: pointer }
`)

/**
 * The page that asks before it deletes, at the address of a delete link (core/clip-access/delete-link.ts). The same for
 * every id, known or not: it reveals nothing of a clip.
 */
export function deletePage(site: Site, id: string): Page {
  const siteUrl = `${site.baseUrl}/`
  return mediaDocument({
    title: `Delete a clip · ${site.name}`,
    siteUrl,
    style,
    modules: ['delete.js'],
    connects: 'self',
    body: html`${siteHeader(site)}
<main>
<article>
<div class="about">
<h1>Delete this clip?</h1>
<p class="hint">Its page, its files and every place that shows it stop working, for good: <a href="${siteUrl}gif/${id}">${siteUrl}gif/${id}</a></p>
<button id="delete" type="button" value="${id}" hidden>Delete it for good</button>
<p class="hint" role="status"></p>
<noscript><p class="hint">This page needs JavaScript. Without it: <code>curl -X DELETE -H "X-Delete-Token: &hellip;" ${siteUrl}media/${id}</code>, where the token is the part of this address after #.</p></noscript>
</div>
</article>
</main>`,
  })
}
