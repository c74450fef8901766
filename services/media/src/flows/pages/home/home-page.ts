// The page at `/`: one clip with edits, or several at once. Its scripts: ../assets/home.js and ../assets/home/; texts:
// words/home.ts. Without JavaScript it shows the command line instead. Tests: home-page.test.ts and, in a browser,
// home-files.slow.test.ts.
import { type Html, html, jsonBlock, raw } from '@services/common/html'
import type { Config } from '../../../config.ts'
import { fileDialogTypes, namesInWords } from '../../../db/source-types.ts'
import type { BrowserSession } from '../../../http/browser-session.ts'
import { failureWords } from '../../../words/failures.ts'
import { type HomeWords, homeWords } from '../../../words/home.ts'
import { homeScriptWords } from '../../../words/home-script.ts'
import type { Language } from '../../../words/language.ts'
import { mediaDocument, type Page, siteHeader, styleOf } from '../document.ts'
import { homePageCss } from '../styles.ts'
import { fileListCss } from './file-list-style.ts'

const style = styleOf(homePageCss + fileListCss)

export interface Home {
  language: Language
  source: Pick<Config['source'], 'types' | 'maxBytes' | 'maxSeconds'>
  needsToken: boolean
  hasLibrary: boolean
  /** Session of the browser; `ended` for one that was. */
  session?: BrowserSession | 'ended' | undefined
}

export function homePage(site: Config['site'], home: Home): Page {
  const { language, source, needsToken, session } = home
  const { types, maxBytes, maxSeconds } = source
  const words = homeWords[language]
  const isSignedIn = session !== undefined && session !== 'ended'
  return mediaDocument({
    language,
    title: `${words.title} · ${site.name}`,
    siteUrl: `${site.baseUrl}/`,
    style,
    files: [site.filesBaseUrl, site.filesRedirectUrl],
    modules: ['home.js', 'trim.js'],
    scripts: ['home/', 'owner/page-data.js', 'owner/request-keys.js'].map((name) => `${site.baseUrl}/assets/${name}`),
    ...(isSignedIn && { formTarget: `${site.baseUrl}/session/end` }),
    showsLocal: true,
    connects: 'files',
    body: html`${siteHeader(site, words)}
<main>
<noscript><article class="about"><h1>${words.title}</h1>
<p>${words.withoutScript}</p>
<pre><code>curl -F file=@clip.mp4 -F title=Hello -H 'Token: mh_&hellip;' ${site.baseUrl}/media/upload
curl --json '{"source":"https://example.com/clip.mp4"}' -H 'Token: mh_&hellip;' ${site.baseUrl}/media/import</code></pre>
<p><a href="docs">${words.documentation}</a></p></article></noscript>
<article id="add" class="about" hidden>
<h1>${words.title}</h1>
<p class="hint">${limitsOf(source, language)}. ${words.becomes}</p>
${isSignedIn && account(site, words, session)}
<div id="resume" class="notice-box" hidden><p>${words.resume}</p><ul id="resume-names"></ul><p class="hint">${words.resumeHow}</p><button id="resume-forget" type="button" class="quiet">${words.forget}</button></div>
<form id="form" novalidate data-types="${namesInWords(types, language === 'de' ? 'und' : 'and')}" data-max-bytes="${maxBytes}" data-max-seconds="${maxSeconds}" data-needs-token="${String(needsToken)}" data-signed-in="${String(isSignedIn)}">
${!isSignedIn && tokenField(site, words, home)}
<div class="field">
<div id="drop" class="drop">
<input id="file" type="file" multiple accept="${fileDialogTypes(types)}" aria-describedby="file-hint file-error">
<label for="file"><strong id="file-name">${words.choose}</strong><span id="file-hint">${words.drop}</span></label>
<button id="clear" type="button" class="quiet" hidden>${words.remove}</button>
</div>
<input id="folder" type="file" webkitdirectory hidden>
<button id="choose-folder" type="button" class="quiet">${words.folder}</button>
<p class="error" id="file-error" hidden></p>
<p class="hint" id="left-out" role="status"></p>
</div>
<div class="field">
<label for="source">${words.source} <span class="optional">${words.sourceHint}</span></label>
<textarea id="source" rows="1" inputmode="url" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="https://" aria-describedby="source-error"></textarea>
<p class="error" id="source-error" hidden></p>
</div>
${edits(words)}
<p class="hint" id="edits-of-one" hidden>${words.editsOfOne}</p>
${details(words, home)}
<p class="error problem" id="problem" role="alert" tabindex="-1" hidden></p>
<button id="send" class="primary">${words.send}</button>
</form>
<section id="work" aria-label="${words.progress}" hidden>
<p id="step" class="step" tabindex="-1"></p>
<progress id="bar" max="100" aria-labelledby="step"></progress>
<p class="row"><span id="detail" class="hint"></span><button id="cancel" type="button" class="quiet">${words.cancel}</button></p>
</section>
<section id="list" aria-labelledby="list-title" hidden>
<h2 id="list-title">${words.list}</h2>
<p class="row"><span id="tally" class="hint"></span><button id="retry-all" type="button" class="quiet" hidden>${words.retryAll}</button><button id="clear-list" type="button" class="quiet" hidden>${words.clear}</button></p>
<ul id="rows" class="files"></ul>
</section>
</article>
<article id="done" aria-labelledby="done-title" hidden>
<div class="stage"><video id="preview" controls loop muted playsinline aria-label="${words.resultPreview}"></video></div>
<div class="about">
<h1 id="done-title" tabindex="-1">${words.ready}</h1>
<p class="facts" id="facts"></p>
<p class="hint" id="ends" hidden>${words.linksEnd}</p>
<ul id="links" class="links"></ul>
<div class="field"><label for="embed">${words.embed}</label><textarea id="embed" readonly rows="4" spellcheck="false"></textarea><button type="button" class="quiet" data-copy="embed">${words.copyEmbed}</button></div>
<button id="another" type="button" class="primary">${words.another}</button>
</div>
</article>
<p id="live" class="unseen" role="status" aria-live="polite"></p>
</main>
${jsonBlock('page-data', { words: homeScriptWords[language], failures: failureWords[language], ...(isSignedIn && { token: session.token.id }) })}`,
  })
}

function limitsOf({ types, maxBytes, maxSeconds }: Home['source'], language: Language): string {
  const words = homeWords[language]
  const megabytes = Math.floor(maxBytes / 1024 ** 2)
  return (megabytes > 0 ? words.limitsWithSize : words.limits)
    .replace('{types}', namesInWords(types, words.or))
    .replace('{length}', `${maxSeconds} ${maxSeconds === 1 ? words.second : words.seconds}`)
    .replace('{megabytes}', String(megabytes))
}

/** The token that the browser is signed in with; its scripts need no other. */
const account = (site: Config['site'], words: HomeWords, { token, formToken }: BrowserSession): Html =>
  html`<div class="account"><p>${words.signedInAs} <strong>${token.name}</strong> (${token.prefix}&hellip;) <a href="${site.baseUrl}/library">${words.library}</a></p>
<form method="post" action="${site.baseUrl}/session/end"><input type="hidden" name="form_token" value="${formToken}"><button class="quiet">${words.signOut}</button></form></div>`

const tokenField = (site: Config['site'], words: HomeWords, { needsToken, hasLibrary, session }: Home): Html =>
  html`<div class="field">
<label for="token">${words.token}${!needsToken && html` <span class="optional">${words.optional}</span>`}</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" autocapitalize="off" placeholder="mh_&hellip;"${needsToken && raw(' required')} aria-describedby="token-hint token-error">
<p class="hint" id="token-hint">${words.tokenHint} <code>tokens create</code> ${words.tokenHintCreate} <code>dev</code> ${words.tokenHintDev}</p>
<p class="error" id="token-error" hidden></p>
<label class="check"><input id="keep" type="checkbox"> ${words.keep}</label>
${hasLibrary && html`<p class="hint">${session === 'ended' && `${words.sessionEnded} `}<a href="${site.baseUrl}/session?next=%2F">${words.signIn}</a>, ${words.signInHint}</p>`}
</div>`

const optional = (text: string): Html => html` <span class="optional">${text}</span>`

const problemOf = (id: string): Html => html`<p class="error" id="${id}-error" hidden></p>`

/** A text field with its problem; `rest` are attributes, constants of ours. */
const text = (id: string, label: string, { hint, rest = '' }: { hint?: string; rest?: string } = {}): Html =>
  html`<div class="field"><label for="${id}">${label}${hint && optional(hint)}</label><input id="${id}" autocomplete="off" ${raw(rest)} aria-describedby="${id}-error">${problemOf(id)}</div>`

const choice = (id: string, label: string, options: readonly (readonly [value: string, name: string])[], chosen = '') =>
  html`<div class="field" id="${id}-field"><label for="${id}">${label}</label><select id="${id}" aria-describedby="${id}-error">${options.map(
    ([value, name]) => html`<option value="${value}"${value === chosen && raw(' selected')}>${name}</option>`,
  )}</select>${problemOf(id)}</div>`

const time = (id: string, label: string, here: string, example: string): Html =>
  html`<div class="field"><label for="${id}">${label}</label><input id="${id}" inputmode="decimal" autocomplete="off" placeholder="${example}" aria-describedby="${id}-error"><button id="${id}-here" type="button" class="quiet" hidden>${here}</button>${problemOf(id)}</div>`

const edits = (words: HomeWords): Html => html`<details id="trim" class="more">
<summary>${words.edits}</summary>
<div id="trim-preview" hidden>
<video id="source-video" muted playsinline controls aria-label="${words.preview}"></video>
<div id="chosen" aria-hidden="true"><div></div></div>
<label for="from">${words.start}</label><input id="from" type="range" min="0" step="0.01">
<label for="to">${words.end}</label><input id="to" type="range" min="0" step="0.01">
</div>
<div class="pair">
${time('start', words.startTime, words.startHere, '0:00')}
${time('end', words.endTime, words.endHere, '0:06.5')}
</div>
<p class="hint" id="part" role="status"></p>
<div class="pair">
${choice('crop', words.shape, [
  ['', words.shapeSame],
  ['1:1', words.shapeSquare],
  ['9:16', words.shapeUpright],
  ['16:9', words.shapeWide],
])}
${choice('speed', words.speed, [
  ['0.5', words.speedHalf],
  ['', words.speedNormal],
  ['1.5', words.speedFaster],
  ['2', words.speedTwice],
  ['4', words.speedFour],
])}
</div>
<div class="pair caption">
${text('caption', words.caption, { rest: 'maxlength="120"' })}
${choice('caption_position', words.place, [
  ['', words.bottom],
  ['top', words.top],
])}
</div>
${text('poster_at', words.poster, { hint: words.posterHint, rest: 'inputmode="decimal" placeholder="0:01"' })}
<label class="check"><input id="mute" type="checkbox"> ${words.mute}</label>
</details>`

const details = (words: HomeWords, { needsToken }: Home): Html => html`<details id="more" class="more">
<summary>${words.more}</summary>
<div id="title-field">${text('title', words.clipTitle)}</div>
${text('tags', words.tags, { hint: words.tagsHint, rest: 'autocapitalize="off"' })}
<label class="check"><input id="nsfw" type="checkbox"> ${words.nsfw}</label>
<div id="albums" hidden>${choice('album', words.album, [['', words.noAlbum]])}</div>
<div class="pair">
${choice('visibility', words.visibility, [
  ['', words.everyone],
  ['unlisted', words.unlisted],
  ['private', words.private],
])}
${choice('expires_in', words.lifetime, [
  ['', needsToken ? words.never : words.usual],
  ['1h', words.afterHour],
  ['1d', words.afterDay],
  ['7d', words.afterWeek],
  ['30d', words.afterMonth],
])}
</div>
<label class="check"><input id="sliding" type="checkbox" aria-describedby="sliding-error"> ${words.sliding}</label>
${problemOf('sliding')}
<fieldset>
<legend>${words.attribution}</legend>
${text('attribution_site', words.site, { hint: words.siteHint, rest: 'list="sites" autocapitalize="off"' })}
<datalist id="sites"><option value="twitter"><option value="reddit"><option value="instagram"></datalist>
${text('attribution_user', words.user, { rest: 'autocapitalize="off"' })}
${text('attribution_url', words.post, { rest: 'type="url" inputmode="url"' })}
</fieldset>
</details>`
