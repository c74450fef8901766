import { type Html, html } from '@services/common/html'
import { thumbHashToAverageRGBA } from 'thumbhash'
import { errorCatalogue } from '../../../errors.ts'
import type { Language } from '../../../words/language.ts'
import { libraryWords } from '../../../words/library.ts'
import type { Formats } from './formats.ts'
import type { ShownClip } from './shown-clips.ts'

/** Everything that a page says about clips depends on. */
export interface Setting {
  language: Language
  formats: Formats
  now: Date
  baseUrl: string
}

/** A clip of the grid. Scripts ask for it again where its state changes. */
export function card(shown: ShownClip, setting: Setting): Html {
  const { clip, state } = shown
  return html`<li class="clip${clip.nsfw && ' sensitive'}" data-id="${clip.id}" data-state="${state}">
<input type="checkbox" name="id" value="${clip.id}" aria-labelledby="choose name-${clip.id}">
${cardBody(shown, setting)}</li>
`
}

/** The poster, the name and the state. */
export function cardBody(shown: ShownClip, setting: Setting): Html {
  const { clip, view, state } = shown
  const isPlayable = state !== 'hidden' && clip.isShowable
  return html`<a href="${setting.baseUrl}/library/${clip.id}"${isPlayable && html` data-mp4="${view.urls.mp4}"`}><span class="poster">${poster(shown)}<span class="length">${setting.formats.length(clip.info.durationSeconds)}</span></span><span class="name" id="name-${clip.id}" dir="auto">${nameOf(shown)}</span></a>
<p class="states">${stateOf(shown, setting)}</p>
`
}

/** Title, else the name of the imported file, else the id. */
export function nameOf({ clip }: Pick<ShownClip, 'clip'>): string {
  return clip.title || fileOf(clip.sourceUrl) || clip.id
}

function fileOf(url: string | null): string | undefined {
  if (!url || !URL.canParse(url)) return undefined
  const { pathname, hostname } = new URL(url)
  return `${hostname}/${pathname.split('/').at(-1)}`.replace(/\/$/, '')
}

/** The thumbhash's colour at once, its picture by a script, the poster when it has loaded. */
function poster({ clip, poster: url, view }: ShownClip): Html {
  const ground =
    clip.placeholder &&
    url &&
    html`<svg><rect width="100%" height="100%" fill="${colourOf(clip.placeholder)}"></rect></svg>`
  const hash = clip.placeholder && url && html` data-hash="${clip.placeholder.toString('base64')}"`
  const width = 320
  const height = Math.max(1, Math.round((view.height / view.width) * width))
  return html`${ground}${url && html`<img src="${url}" width="${width}" height="${height}" alt="" loading="lazy" decoding="async"${hash}>`}`
}

function colourOf(hash: Uint8Array): string {
  const { r, g, b } = thumbHashToAverageRGBA(hash)
  const hex = (part: number) =>
    Math.round(Math.min(1, Math.max(0, part)) * 255)
      .toString(16)
      .padStart(2, '0')
  return `#${hex(r)}${hex(g)}${hex(b)}`
}

/** The state that needs the owner's eye first, then who sees the clip and for how long. */
export function stateOf(shown: ShownClip, { language, formats, now }: Setting): Html {
  const { clip, state, place, views } = shown
  const words = libraryWords[language]
  const badge = (text: string, kind = '') => html`<span class="badge${kind && ` ${kind}`}">${text}</span> `
  return html`${state === 'processing' && progress(clip.progress, place, { language, formats })}${
    state === 'failed' &&
    badge(`${words.failed}: ${clip.errorCode ? errorCatalogue[clip.errorCode].message : ''}`, 'bad')
  }${state === 'hidden' && badge(clip.hiddenReason ? `${words.hidden}: ${words.hiddenReasons[clip.hiddenReason]}` : words.hidden, 'bad')}${
    clip.visibility !== 'public' && badge(words[clip.visibility])
  }${clip.nsfw && badge(words.sensitive)}${
    clip.expiresAt && badge(`${words.expires} ${formats.until(clip.expiresAt, now)}`)
  }${views && views.total > 0 && html`<span class="views">${formats.number(views.total)} ${words.views}</span>`}`
}

function progress(
  done: number,
  place: number | undefined,
  { language, formats }: Pick<Setting, 'language' | 'formats'>,
) {
  const words = libraryWords[language]
  if (done === 0)
    return html`<span class="badge busy">${words.waiting}${place !== undefined && ` ${formats.number(place)}`}</span> `
  return html`<span class="badge busy">${words.making} ${formats.percent(done)}</span><progress max="1" value="${done.toFixed(2)}" aria-label="${words.making}"></progress> `
}
