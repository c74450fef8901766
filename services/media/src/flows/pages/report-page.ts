import { html } from '@services/common/html'
import { type ClipView, titleOf } from '../../core/clip-views/clip-view.ts'
import { MAX_TEXT } from '../../core/reports/report-fields.ts'
import type { ReportReason } from '../../db/tables.ts'
import { mediaDocument, type Page, type Site, siteHeader, styleOf } from './document.ts'
import { homePageCss } from './styles.ts'

const style = styleOf(`${homePageCss}
.hint a { color: var(--accent) }
.choice { display: flex; align-items: center; gap: .625rem; min-height: 2.5rem; font-size: .9375rem }
.choice input { width: 1.125rem; height: 1.125rem; min-height: 0; margin: 0; accent-color: var(--accent) }
`)

const REASONS: Record<ReportReason, string> = {
  illegal: 'It is illegal',
  copyright: 'It infringes my copyright',
  harassment: 'It harasses or threatens a person',
  nsfw: 'It is not safe for work, and not marked so',
  spam: 'It is spam',
  other: 'Something else',
}

/** The form by which a visitor reports a clip; works without JavaScript. */
export function reportPage(clip: ClipView, site: Site): Page {
  const target = clip.urls.report ?? ''
  return mediaDocument({
    title: `Report ${titleOf(clip)} · ${clip.siteName}`,
    siteUrl: clip.siteUrl,
    style,
    formTarget: target.split('?', 1)[0] as string,
    body: html`${siteHeader(site)}
<main>
<article>
<div class="about">
<h1>Report this clip</h1>
<p class="hint">The operator of ${clip.siteName} decides about <a href="${clip.urls.page}" dir="auto">${titleOf(clip)}</a>.</p>
<form method="post" action="${target}">
<fieldset>
<legend>What is wrong with it?</legend>
${Object.entries(REASONS).map(
  ([reason, label]) =>
    html`<label class="choice"><input type="radio" name="reason" value="${reason}" required> ${label}</label>\n`,
)}</fieldset>
<div class="field"><label for="text">Details <span class="optional">(optional)</span></label>
<textarea id="text" name="text" rows="4" maxlength="${MAX_TEXT}"></textarea></div>
<div class="field"><label for="email">Your e-mail <span class="optional">(optional)</span></label>
<input id="email" name="email" type="email" maxlength="254" autocomplete="email">
<p class="hint">For questions of the operator, and shown to no one else.</p></div>
<button class="primary">Send report</button>
</form>
</div>
</article>
</main>`,
  })
}

/** The answer to every report. */
export const thanksPage = (site: Site): Page =>
  mediaDocument({
    title: `Report received · ${site.name}`,
    siteUrl: `${site.baseUrl}/`,
    style,
    body: html`${siteHeader(site)}
<main>
<article>
<div class="about">
<h1>Thank you</h1>
<p class="hint">The operator of ${site.name} will decide about your report.</p>
</div>
</article>
</main>`,
  })
