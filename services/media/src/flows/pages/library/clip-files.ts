// Files of a clip with their sizes, other sizes by address, and texts to copy.
import { type Html, html } from '@services/common/html'
import { table } from '@services/common/pages/table'
import { elementSnippet, embedSnippet } from '../../../core/clip-views/embed-snippet.ts'
import { VARIANT_TYPES, type VariantEnding } from '../../../core/variants/variant.ts'
import type { Language } from '../../../words/language.ts'
import { ownClipWords } from '../../../words/own-clip.ts'
import { nameOf, type Setting } from './card.ts'
import type { OwnClip, ShownClip } from './shown-clips.ts'

/** A choice of the fixed set (core/variants/variant.ts). */
const SIZES: Partial<Record<VariantEnding, readonly string[]>> = {
  ...{ jpg: ['w160', 'w320', 'w640', 'w960'], webp: ['w160', 'w320', 'w640', 'w960'] },
  ...{ gif: ['w240', 'w320', 'max8m', 'max10m', 'max25m'], 'anim.webp': ['w240', 'w320'] },
  mp4: ['w480', 'max8m', 'max10m', 'max25m'],
}

const withDownload = (url: string) => `${url}${url.includes('?') ? '&' : '?'}download=1`

export function fileTable({ shown: { view }, files }: OwnClip, { language, formats }: Setting): Html {
  const words = ownClipWords[language]
  const rows = files.flatMap(({ kind, bytes, width, height }) => {
    const url = view.urls[kind]
    if (url === undefined) return []
    const name = kind === 'av1' ? 'AV1' : kind.toUpperCase()
    const acts = html`<span class="actions"><a href="${url}" aria-label="${words.open}: ${name}">${words.open}</a><a href="${withDownload(url)}" aria-label="${words.save}: ${name}">${words.save}</a></span>`
    return [[name, formats.bytes(bytes), `${formats.number(width)} × ${formats.number(height)}`, acts]]
  })
  const columns = [words.kind, words.size, words.pixels, words.open]
  return html`<section class="part" aria-labelledby="files"><h2 id="files">${words.files}</h2>
${table({ caption: words.files, columns, rows, empty: '' })}</section>
`
}

export function otherSizes({ shown: { view, clip } }: OwnClip, { language }: Setting): Html {
  const words = ownClipWords[language]
  const [, files = ''] = /^(.*)\.mp4/.exec(view.urls.mp4) ?? []
  const link = (ending: VariantEnding, size: string) => {
    const query = new URL(view.urls[VARIANT_TYPES[ending].original]).search
    const label = size.replace(/^w(\d+)$/, '$1 px').replace(/^max(\d+)m$/, `${words.limited} $1 MB`)
    return html`<li><a href="${withDownload(`${files}/${size}.${ending}${query}`)}" rel="nofollow">${label}</a></li>\n`
  }
  const row = ([ending, sizes]: [string, readonly string[]]) =>
    html`<dt>${ending === 'anim.webp' ? 'WebP (animation)' : ending.toUpperCase()}</dt><dd><ul>${sizes.map((size) => link(ending as VariantEnding, size))}</ul></dd>\n`
  return html`<details class="part" data-id="${clip.id}"><summary>${words.sizes}</summary>
<p class="hint">${words.sizesHint}</p>
<dl class="sizes">${Object.entries(SIZES).map(row)}</dl></details>
`
}

/** Texts for other pages. Those of a private clip would end with their signatures. */
export function copies(shown: ShownClip, { language }: Setting): Html {
  const { view } = shown
  const { urls } = view
  const words = ownClipWords[language]
  const title = nameOf(shown).replace(/[[\]\\]/g, '\\$&')
  const texts: [string, string][] = [
    [words.page, urls.page],
    ['GIF', urls.gif],
    ['MP4', urls.mp4],
    ['WebM', urls.webm],
    ['JPG', urls.jpg],
    [words.iframe, embedSnippet(view)],
    [words.element, elementSnippet(view)],
    ['Markdown', `[![${title}](${urls.gif})](${urls.page})`],
    ['BBCode', `[url=${urls.page}][img]${urls.gif}[/img][/url]`],
    ['oEmbed', urls.oembed],
  ]
  return copyList(texts, language)
}

/** Texts with their names, each with a button that copies it. */
export function copyList(texts: readonly (readonly [name: string, text: string])[], language: Language): Html {
  const words = ownClipWords[language]
  const row = ([name, text]: readonly [string, string], index: number) =>
    html`<li><label for="copy-${index}">${name}</label><input id="copy-${index}" value="${text}" readonly><button type="button" class="quiet scripted" data-copy="copy-${index}" aria-label="${words.copy}: ${name}">${words.copy}</button></li>\n`
  return html`<details class="part" open><summary>${words.copies}</summary>
<ul class="copies">${texts.map(row)}</ul></details>
`
}
