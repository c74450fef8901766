import { type Html, html } from '@services/common/html'
import { notice } from '@services/common/pages/notices'
import { embedSize } from '../../../core/clip-views/embed-snippet.ts'
import { errorCatalogue } from '../../../errors.ts'
import { ownClipWords } from '../../../words/own-clip.ts'
import { nameOf, type Setting, stateOf } from './card.ts'
import { copies, fileTable, otherSizes } from './clip-files.ts'
import { clipForm, posterForm } from './clip-form.ts'
import { viewsByDay } from './clip-views.ts'
import type { OwnClip, ShownClip } from './shown-clips.ts'

/** Everything about a clip: at the left what it shows, at the right what its owner may change. */
export function ownClipPage(own: OwnClip, setting: Setting): Html {
  const { shown, views, may } = own
  const { clip, view, state } = shown
  const words = ownClipWords[setting.language]
  const isPlayable = clip.isShowable && state !== 'hidden'
  return html`<p class="states">${stateOf(shown, setting)}</p>
<p id="changed" hidden></p>
<div class="halves">
<div class="half">
${stage(shown, setting)}
${isPlayable && clip.visibility === 'private' && notice('news', words.privateHint)}${
  isPlayable &&
  html`<p class="actions">${view.opensPage && html`<a class="button" href="${view.urls.page}">${words.openPage}</a>`}${may.write && html`<a class="button quiet" href="${setting.baseUrl}/#from=${encodeURIComponent(view.urls.mp4)}">${words.fromThis}</a>`}</p>\n`
}${isPlayable && fileTable(own, setting)}${state === 'ready' && otherSizes(own, setting)}${views && viewsByDay(views, setting)}
</div>
<div class="half">
${may.write && clipForm(shown, setting)}${may.write && state === 'ready' && posterForm(shown, setting)}${
  isPlayable && clip.visibility !== 'private' && copies(shown, setting)
}${may.write && clip.visibility === 'private' && links(setting)}
${deliveries(setting)}${may.delete && html`<p class="actions end"><a class="button danger" id="delete" href="${setting.baseUrl}/library/delete?id=${clip.id}">${words.deleteClip}</a></p>\n`}</div>
</div>
`
}

/** The player of embeds, or why there is none. */
function stage(shown: ShownClip, { language }: Setting): Html {
  const { clip, view, state } = shown
  const words = ownClipWords[language]
  if (state === 'hidden') return notice('problem', words.isHidden)
  if (state === 'failed') {
    return notice('problem', `${words.notMade} ${clip.errorCode ? errorCatalogue[clip.errorCode].message : ''}`)
  }
  if (!clip.isShowable) return notice('news', words.notReady)
  const { width, height } = embedSize(view)
  return html`<div class="stage"><svg class="room" viewBox="0 0 ${width} ${height}" aria-hidden="true"></svg><iframe src="${view.urls.embed}" title="${nameOf(shown)}" allow="autoplay; fullscreen" allowfullscreen></iframe></div>`
}

/** Links of a private clip or album, which scripts list and make. */
export function links({ language, formats }: Setting): Html {
  const words = ownClipWords[language]
  const hours = new Map([
    ['1h', 1],
    ['1d', 24],
    ['7d', 168],
    ['30d', 720],
  ])
  const option = ([span, count]: [string, number]) =>
    html`<option value="${span}">${count < 48 ? formats.hours(count) : formats.days(count / 24)}</option>`
  return html`<section class="part scripted" id="links" aria-labelledby="links-title">
<h2 id="links-title">${words.links}</h2>
<ul class="rows"></ul>
<form class="actions"><label>${words.linkFor} <select name="expires_in">${[...hours].map(option)}</select></label>
<button type="submit" class="quiet">${words.makeLink}</button><button type="button" class="danger" id="end-links">${words.endLinks}</button></form>
</section>
`
}

/** Deliveries of webhooks, which scripts ask for when they are opened. */
const deliveries = ({ language }: Setting): Html =>
  html`<details class="part scripted" id="deliveries"><summary>${ownClipWords[language].deliveries}</summary><div></div></details>\n`
