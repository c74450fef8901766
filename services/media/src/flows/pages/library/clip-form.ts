// The fields that the owner of a clip changes in place. Scripts save each one, so they are hidden without.
import { type Html, html } from '@services/common/html'
import { ownClipWords } from '../../../words/own-clip.ts'
import { VISIBILITIES } from './address.ts'
import type { Setting } from './card.ts'
import type { ShownClip } from './shown-clips.ts'

const SPANS = ['1h', '1d', '7d', '30d'] as const

export function clipForm({ clip }: ShownClip, { language, formats }: Setting): Html {
  const words = ownClipWords[language]
  const text = (name: string, label: string, value: string | null | undefined, maxlength: number) =>
    html`<div class="field"><label for="f-${name}">${label}</label>
<input id="f-${name}" name="${name}" value="${value}" maxlength="${maxlength}" autocomplete="off" dir="auto"><p class="said" id="said-${name}" role="status"></p></div>
`
  return html`<noscript><p class="hint">${words.scriptNeeded}</p></noscript>
<section class="part scripted" aria-labelledby="details">
<h2 id="details">${words.details}</h2>
<form id="clip">
${text('title', words.title, clip.title, 200)}<div class="field"><label for="f-tags">${words.tags}</label>
<p class="hint" id="tags-hint">${words.tagsHint}</p>
<input id="f-tags" name="tags" value="${clip.tags.join(', ')}" maxlength="2000" autocomplete="off" dir="auto" aria-describedby="tags-hint">
<ul class="tags" id="proposals" aria-label="${words.proposals}" hidden></ul><p class="said" id="said-tags" role="status"></p></div>
<fieldset class="field pair"><legend>${words.credit}</legend>
<label>${words.creditSite} <input name="site" value="${clip.attribution?.url ?? clip.attribution?.site}" maxlength="2048" autocomplete="off"></label>
<label>${words.creditUser} <input name="user" value="${clip.attribution?.user}" maxlength="100" autocomplete="off" dir="auto"></label>
<p class="said" id="said-attribution" role="status"></p></fieldset>
<div class="field"><label class="check"><input type="checkbox" name="nsfw"${clip.nsfw && html` checked`}><span>${words.sensitive}</span></label><p class="said" id="said-nsfw" role="status"></p></div>
<div class="field"><label for="f-visibility">${words.visibility}</label>
<select id="f-visibility" name="visibility">${VISIBILITIES.map((value) => html`<option value="${value}"${value === clip.visibility && html` selected`}>${words.visibilityHints[value]}</option>`)}</select><p class="said" id="said-visibility" role="status"></p></div>
<div class="field"><label for="f-lifetime">${words.lifetime}</label>
<select id="f-lifetime" name="lifetime"><option value="">${words.keep}: ${clip.expiresAt ? formats.moment(clip.expiresAt) : words.forever}</option><option value="never">${words.forever}</option>${SPANS.map((span) => html`<option value="${span}">${words.spans[span]}</option>`)}</select>
<label class="check"><input type="checkbox" name="sliding"${clip.slidingSeconds !== null && html` checked`}><span>${words.sliding}</span></label><p class="said" id="said-lifetime" role="status"></p></div>
</form>
</section>
`
}

/** The poster is the picture at which the reader stops the clip. */
export function posterForm({ clip, view }: ShownClip, { language }: Setting): Html {
  const words = ownClipWords[language]
  return html`<details class="part scripted" id="poster" data-mp4="${view.urls.mp4}"><summary>${words.posterTitle}</summary>
<p class="hint">${words.posterHint}</p>
<label>${words.posterMoment} <input type="range" min="0" max="${Math.max(0, clip.info.durationSeconds - 0.05).toFixed(2)}" step="0.05" value="0"></label> <output>0 s</output>
<div class="actions"><button type="button" class="quiet">${words.posterUse}</button></div></details>
`
}
