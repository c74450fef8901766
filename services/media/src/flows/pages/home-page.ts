import { html, raw } from '@services/common/html'
import type { Config } from '../../config.ts'
import { fileDialogTypes, namesInWords } from '../../db/source-types.ts'
import { mediaDocument, type Page, siteHeader, styleOf } from './document.ts'
import { homePageCss } from './styles.ts'

const style = styleOf(homePageCss)

/** The page at `/`, to try the service. Without JavaScript it shows the command line instead. */
export function homePage(
  site: Config['site'],
  {
    types,
    maxBytes,
    maxSeconds,
    needsToken,
  }: Pick<Config['source'], 'types' | 'maxBytes' | 'maxSeconds'> & { needsToken: boolean },
): Page {
  const megabytes = Math.floor(maxBytes / 1024 ** 2)
  const seconds = maxSeconds === 1 ? '1 second' : `${maxSeconds} seconds`
  const limits = `${namesInWords(types, 'or')}, up to ${seconds}${megabytes > 0 ? ` and ${megabytes} MB` : ''}`
  return mediaDocument({
    title: `Add a clip · ${site.name}`,
    siteUrl: `${site.baseUrl}/`,
    style,
    files: [site.filesBaseUrl, site.filesRedirectUrl],
    modules: ['home.js', 'trim.js'],
    scripts: [`${site.baseUrl}/assets/home/`],
    showsLocal: true,
    connects: true,
    body: html`${siteHeader(site)}
<main>
<noscript><article class="about"><h1>Add a clip</h1>
<p>This page needs JavaScript. Without it, clips are added from a command line:</p>
<pre><code>curl -F file=@clip.mp4 -F title=Hello -H 'Token: mh_&hellip;' ${site.baseUrl}/media/upload
curl --json '{"source":"https://example.com/clip.mp4"}' -H 'Token: mh_&hellip;' ${site.baseUrl}/media/import</code></pre>
<p><a href="docs">The API&rsquo;s documentation</a></p></article></noscript>
<article id="add" class="about" hidden>
<h1>Add a clip</h1>
<p class="hint">${limits}. It becomes a page with an embed and four files.</p>
<form id="form" novalidate data-types="${namesInWords(types, 'and')}" data-max-bytes="${maxBytes}" data-max-seconds="${maxSeconds}" data-needs-token="${String(needsToken)}">
<div class="field">
<label for="token">Token${!needsToken && html` <span class="optional">optional</span>`}</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" autocapitalize="off" placeholder="mh_&hellip;"${needsToken && raw(' required')} aria-describedby="token-hint token-error">
<p class="hint" id="token-hint">Ask the operator of this service: <code>tokens create</code> creates one, and <code>dev</code> prints one when it starts.</p>
<p class="error" id="token-error" hidden></p>
<label class="check"><input id="keep" type="checkbox"> Keep it until this tab is closed</label>
</div>
<div class="field">
<div id="drop" class="drop">
<input id="file" type="file" accept="${fileDialogTypes(types)}" aria-describedby="file-hint file-error">
<label for="file"><strong id="file-name">Choose a file</strong><span id="file-hint">or drop it here</span></label>
<button id="clear" type="button" class="quiet" hidden>Remove</button>
</div>
<p class="error" id="file-error" hidden></p>
</div>
<div class="field">
<label for="source">or the address of one</label>
<input id="source" type="url" inputmode="url" autocomplete="off" placeholder="https://" aria-describedby="source-error">
<p class="error" id="source-error" hidden></p>
</div>
<details id="trim" class="more">
<summary>Trim, shape, speed and caption</summary>
<div id="trim-preview" hidden>
<video id="source-video" muted playsinline controls aria-label="The chosen file"></video>
<div id="chosen" aria-hidden="true"><div></div></div>
<label for="from">Start</label><input id="from" type="range" min="0" step="0.01">
<label for="to">End</label><input id="to" type="range" min="0" step="0.01">
</div>
<div class="pair">
<div class="field"><label for="start">Start time</label><input id="start" inputmode="decimal" autocomplete="off" placeholder="0:00" aria-describedby="start-error"><button id="start-here" type="button" class="quiet" hidden>Start here</button><p class="error" id="start-error" hidden></p></div>
<div class="field"><label for="end">End time</label><input id="end" inputmode="decimal" autocomplete="off" placeholder="0:06.5" aria-describedby="end-error"><button id="end-here" type="button" class="quiet" hidden>End here</button><p class="error" id="end-error" hidden></p></div>
</div>
<p class="hint" id="part" role="status"></p>
<div class="pair">
<div class="field"><label for="crop">Shape</label><select id="crop" aria-describedby="crop-error"><option value="">As it is</option><option value="1:1">Square</option><option value="9:16">Upright, 9:16</option><option value="16:9">Wide, 16:9</option></select><p class="error" id="crop-error" hidden></p></div>
<div class="field"><label for="speed">Speed</label><select id="speed" aria-describedby="speed-error"><option value="0.5">Half</option><option value="" selected>Normal</option><option value="1.5">1.5 times</option><option value="2">Twice</option><option value="4">Four times</option></select><p class="error" id="speed-error" hidden></p></div>
</div>
<div class="pair caption">
<div class="field"><label for="caption">Caption</label><input id="caption" maxlength="120" autocomplete="off" aria-describedby="caption-error"><p class="error" id="caption-error" hidden></p></div>
<div class="field"><label for="caption_position">Place</label><select id="caption_position" aria-describedby="caption_position-error"><option value="" selected>Bottom</option><option value="top">Top</option></select><p class="error" id="caption_position-error" hidden></p></div>
</div>
<div class="field"><label for="poster_at">Poster <span class="optional">second of the clip that stands for it</span></label><input id="poster_at" inputmode="decimal" autocomplete="off" placeholder="0:01" aria-describedby="poster_at-error"><p class="error" id="poster_at-error" hidden></p></div>
<label class="check"><input id="mute" type="checkbox"> Without sound</label>
</details>
<details id="more" class="more">
<summary>Title, tags and more</summary>
<div class="field"><label for="title">Title</label><input id="title" autocomplete="off" aria-describedby="title-error"><p class="error" id="title-error" hidden></p></div>
<div class="field"><label for="tags">Tags <span class="optional">comma-separated</span></label><input id="tags" autocomplete="off" autocapitalize="off" aria-describedby="tags-error"><p class="error" id="tags-error" hidden></p></div>
<label class="check"><input id="nsfw" type="checkbox"> Not safe for work</label>
<div class="pair">
<div class="field"><label for="visibility">Who can see it</label><select id="visibility" aria-describedby="visibility-error"><option value="">Everyone</option><option value="unlisted">Everyone with the address</option><option value="private">Only with a link that ends</option></select><p class="error" id="visibility-error" hidden></p></div>
<div class="field"><label for="expires_in">Delete it</label><select id="expires_in" aria-describedby="expires_in-error"><option value="">${needsToken ? 'Never' : 'As usual here'}</option><option value="1h">After an hour</option><option value="1d">After a day</option><option value="7d">After a week</option><option value="30d">After 30 days</option></select><p class="error" id="expires_in-error" hidden></p></div>
</div>
<label class="check"><input id="sliding" type="checkbox" aria-describedby="sliding-error"> Each visit puts the deletion off</label>
<p class="error" id="sliding-error" hidden></p>
<fieldset>
<legend>Attribution</legend>
<div class="field"><label for="attribution_site">Site <span class="optional">twitter, reddit, instagram or an address</span></label><input id="attribution_site" list="sites" autocomplete="off" autocapitalize="off" aria-describedby="attribution_site-error"><datalist id="sites"><option value="twitter"><option value="reddit"><option value="instagram"></datalist><p class="error" id="attribution_site-error" hidden></p></div>
<div class="field"><label for="attribution_user">User</label><input id="attribution_user" autocomplete="off" autocapitalize="off" aria-describedby="attribution_user-error"><p class="error" id="attribution_user-error" hidden></p></div>
<div class="field"><label for="attribution_url">Address of the post</label><input id="attribution_url" type="url" inputmode="url" autocomplete="off" aria-describedby="attribution_url-error"><p class="error" id="attribution_url-error" hidden></p></div>
</fieldset>
</details>
<p class="error problem" id="problem" role="alert" tabindex="-1" hidden></p>
<button id="send" class="primary">Add the clip</button>
</form>
<section id="work" aria-label="Progress" hidden>
<p id="step" class="step" tabindex="-1"></p>
<progress id="bar" max="100" aria-labelledby="step"></progress>
<p class="row"><span id="detail" class="hint"></span><button id="cancel" type="button" class="quiet">Cancel</button></p>
</section>
</article>
<article id="done" aria-labelledby="done-title" hidden>
<div class="stage"><video id="preview" controls loop muted playsinline aria-label="Preview"></video></div>
<div class="about">
<h1 id="done-title" tabindex="-1">The clip is ready</h1>
<p class="facts" id="facts"></p>
<p class="hint" id="ends" hidden>The clip is private: these addresses work for one hour.</p>
<ul id="links" class="links"></ul>
<div class="field"><label for="embed">Embed code</label><textarea id="embed" readonly rows="4" spellcheck="false"></textarea><button type="button" class="quiet" data-copy="embed">Copy the embed code</button></div>
<button id="another" type="button" class="primary">Add another</button>
</div>
</article>
<p id="live" class="unseen" role="status" aria-live="polite"></p>
</main>`,
  })
}
