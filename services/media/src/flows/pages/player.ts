import { type Html, html, raw } from '@services/common/html'
import { thumbHashToDataURL } from 'thumbhash'
import { type ClipView, titleOf } from '../../core/clip-views/clip-view.ts'
import type { Size } from '../../core/clips/geometry.ts'

/** Seconds until a page reloads whose clip is processing. */
const REFRESH_SECONDS = 3

/** A clip that can be shown is not interrupted. */
export function refreshTag({ state, isShowable }: ClipView): Html | false {
  return state === 'processing' && !isShowable && html`<meta http-equiv="refresh" content="${REFRESH_SECONDS}">\n`
}

/** Members of a page with a player: the files that its policy allows, and the clip's own stylesheet. */
export const playerSources = ({ urls, filesRedirectUrl, ...clip }: ClipView) => ({
  files: [urls.gif, urls.jpg, urls.mp4, urls.webm, filesRedirectUrl],
  placeholder: clip.isShowable && clip.placeholder ? placeholderCss(clip.placeholder) : undefined,
})

/** CSS that shows the clip's colours until its poster loads, from a thumbhash. */
function placeholderCss(hash: Uint8Array): string {
  // Alpha flag of the thumbhash: bit 23 of its header.
  const isTransparent = ((hash[2] ?? 0) & 0x80) !== 0
  // The colours would shine through a transparent clip, and on squares both light and dark content stands out.
  if (isTransparent)
    return `video { background: repeating-conic-gradient(#d4d8df 0 25%, #f1f3f6 0 50%) 0 0 / 20px 20px }
@media (prefers-color-scheme: dark) { video { background-image: repeating-conic-gradient(#555c68 0 25%, #6b7280 0 50%) } }`
  return `video { background: url(${thumbHashToDataURL(hash)}) center / contain no-repeat }`
}

/** Shows the clip, its progress, its failure, or a gate that takes a click. Works without JavaScript. */
export function player(clip: ClipView, size: Size, words: GateWords = GATE): Html {
  if (clip.state === 'processing' && !clip.isShowable) return placeholder(size, 'Getting the clip ready', progressBar)
  if (clip.state === 'failed') return placeholder(size, 'This clip could not be processed.', reason(clip))
  return clip.nsfw ? gate(videos(clip, size), spacer(size), words) : videos(clip, size)
}

/** Two elements, as `autoplay` knows no preference: the stylesheet shows one, `media` keeps the moving one unloaded. */
function videos(clip: ClipView, size: Size): Html {
  return html`${video(clip, size, {
    attributes: raw('class="moving" autoplay'),
    media: raw(' media="(prefers-reduced-motion: no-preference)"'),
  })}
${video(clip, size, { attributes: raw('class="still" preload="none"'), media: raw('') })}`
}

function video(
  { urls, ...clip }: ClipView,
  { width, height }: Size,
  { attributes, media }: Record<string, Html>,
): Html {
  const title = titleOf({ ...clip, urls })
  const isReady = clip.state === 'ready'
  // Without a picture in the head, previews take one of the page: a sensitive clip must have none.
  const picture = html`<img src="${urls.jpg}" width="${width}" height="${height}" loading="lazy" alt="${title}">`
  return html`<video ${attributes} width="${width}" height="${height}" poster="${posterOf({ urls })}" loop muted playsinline controls aria-label="${title}">
${videoSources({ urls, ...clip }).map(({ src, type }) => html`<source src="${src}" type="${type}"${media}>\n`)}<a href="${isReady ? urls.gif : urls.mp4}">${clip.nsfw ? title : picture}</a>
</video>`
}

export const posterOf = ({ urls }: Pick<ClipView, 'urls'>): string => urls.webp ?? urls.jpg

/** Stored videos; browsers play the first that they can. */
export function videoSources({ urls, state, hasAudio }: Pick<ClipView, 'urls' | 'state' | 'hasAudio'>) {
  return [
    ...(urls.av1 ? [{ src: urls.av1, type: av1Type(hasAudio) }] : []),
    ...(state === 'ready' ? [{ src: urls.webm, type: 'video/webm' }] : []),
    { src: urls.mp4, type: 'video/mp4' },
  ]
}

/** Main profile, 8 bits, level 4.0: our largest picture at its highest rate. */
const av1Type = (hasAudio: boolean) => `video/mp4; codecs="av01.0.08M.08${hasAudio ? ', mp4a.40.2' : ''}"`

/** Texts of a gate. */
export interface GateWords {
  notSafe: string
  marked: string
  show: string
  hide: string
}

const GATE: GateWords = {
  notSafe: 'Not safe for work',
  marked: 'This clip was marked as sensitive.',
  show: 'Show it',
  hide: 'Hide',
}

/** Keeps `content` behind a click; `shape` reserves its size. */
export function gate(content: Html, shape: Html | false, { notSafe, marked, show, hide }: GateWords): Html {
  return html`<details class="gate">
<summary><span class="closed">${shape}<span class="notice"><strong>${notSafe}</strong><span>${marked}</span><span class="button">${show}</span></span></span><span class="opened button">${hide}</span></summary>
${content}
</details>`
}

function placeholder(size: Size, text: string, extra?: Html): Html {
  return html`<div class="placeholder">${spacer(size)}<div class="notice" role="status"><strong>${text}</strong>${extra}</div></div>`
}

/** The error code concerns only the file, so it may be public. */
const reason = ({ failure }: ClipView): Html | undefined =>
  failure &&
  html`<span>${failure.message} <a href="${failure.reference}" target="_blank" rel="noopener">${failure.code}</a></span>`

const progressBar = html`<span>This takes a few seconds. The page refreshes by itself.</span><span class="progress"></span>`

/** Invisible picture in the shape of the clip: the layout does not move when the clip replaces it. */
function spacer({ width, height }: Size): Html {
  return html`<svg class="spacer" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" aria-hidden="true"></svg>`
}
