import { type Html, html } from '@services/common/html'
import { button, hiddenFields } from '@services/common/pages/forms'
import { libraryWords } from '../../../words/library.ts'
import { nameOf, type Setting } from './card.ts'
import type { ShownClip } from './shown-clips.ts'

/** Asks before it deletes, for browsers without script. */
export function deletePage(clips: readonly ShownClip[], formToken: string, { language, baseUrl }: Setting): Html {
  const words = libraryWords[language]
  const ids = clips.map(({ clip }) => clip.id).join()
  if (clips.length === 0)
    return html`<p>${words.noneChosen}</p>\n<p><a href="${baseUrl}/library">${words.back}</a></p>\n`
  return html`<p>${words.deleteText}</p>
<ul class="rows">${clips.map((shown) => html`<li dir="auto">${nameOf(shown)}</li>\n`)}</ul>
<form method="post" action="${baseUrl}/library/delete">${hiddenFields({ form_token: formToken, ids })}<div class="actions">${button({ label: words.deleteForGood, kind: 'danger' })}<a href="${baseUrl}/library">${words.back}</a></div></form>
`
}
