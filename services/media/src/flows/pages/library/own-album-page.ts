// One album for its owner: at the left its clips, at the right what the owner may change. Order and links need scripts.
import { type Html, html } from '@services/common/html'
import { notice } from '@services/common/pages/notices'
import type { RawAlbumFields } from '../../../core/albums/album-fields.ts'
import type { AlbumDetails } from '../../../core/albums/album-view.ts'
import { libraryWords } from '../../../words/library.ts'
import { ownAlbumWords } from '../../../words/own-albums.ts'
import { cardBody, nameOf, type Setting } from './card.ts'
import { copyList } from './clip-files.ts'
import { albumFields } from './own-albums-page.ts'
import { links } from './own-clip-page.ts'
import type { ShownClip } from './shown-clips.ts'

export interface OwnAlbum {
  album: AlbumDetails
  clips: readonly ShownClip[]
  isFirst: boolean
  nextCursor: string | null
  mayWrite: boolean
  formToken: string
  /** Fields of a form that was refused, and why. */
  typed?: RawAlbumFields | undefined
  problem?: string | undefined
  /** The album was changed since the form was made. */
  isStale?: boolean | undefined
}

export function ownAlbumPage(own: OwnAlbum, setting: Setting): Html {
  const { album, isFirst, nextCursor, mayWrite, problem, isStale } = own
  const { language, formats, baseUrl } = setting
  const words = ownAlbumWords[language]
  const isPrivate = album.visibility === 'private'
  const path = `${baseUrl}/library/albums/${album.id}`
  return html`<p class="states"><span class="badge">${libraryWords[language][album.visibility]}</span> ${words.clips}: <span id="count">${formats.number(album.count)}</span></p>
${isStale && stored(album, setting)}${problem && notice('problem', problem)}<div class="halves">
<div class="half">
${!isFirst && html`<p class="way"><a href="${path}">${words.toBeginning}</a></p>\n`}${items(own, setting)}${nextCursor !== null && html`<p class="way"><a rel="next" href="${path}?cursor=${nextCursor}">${words.next}</a></p>\n`}
${mayWrite && html`<p class="hint">${words.addHint} <a href="${baseUrl}/library">${words.toLibrary}</a></p>\n<noscript><p class="hint">${words.order}</p></noscript>\n`}</div>
<div class="half">
${isPrivate ? notice('news', words.privateHint) : html`<p class="actions"><a class="button" href="${album.page}">${words.open}</a></p>\n`}${mayWrite && form(own, setting)}${!isPrivate && copies(album, setting)}${mayWrite && isPrivate && links(setting)}${
  mayWrite && html`<p class="actions end"><a class="button danger" href="${path}/delete">${words.delete}</a></p>\n`
}</div>
</div>
`
}

/** Asks before it deletes. */
export function albumDeletePage(
  { id, title }: Pick<AlbumDetails, 'id' | 'title'>,
  formToken: string,
  { language, baseUrl }: Setting,
): Html {
  const words = ownAlbumWords[language]
  const path = `${baseUrl}/library/albums/${id}`
  return html`<p><strong dir="auto">${title}</strong></p>
<p>${words.deleteText}</p>
<form method="post" action="${path}/delete"><input type="hidden" name="form_token" value="${formToken}"><div class="actions"><button type="submit" class="danger">${words.deleteForGood}</button><a href="${path}">${words.back}</a></div></form>
`
}

function stored({ title, description, visibility }: AlbumDetails, { language }: Setting): Html {
  const words = ownAlbumWords[language]
  return html`<div class="notice problem" role="alert"><p>${words.changed}</p>
<ul><li>${words.name}: <bdi>${title}</bdi></li><li>${words.description}: <bdi>${description ?? words.none}</bdi></li><li>${words.visibility}: ${libraryWords[language][visibility]}</li></ul></div>
`
}

function form({ album, typed, formToken }: OwnAlbum, setting: Setting): Html {
  const words = ownAlbumWords[setting.language]
  return html`<section class="part" aria-labelledby="details"><h2 id="details">${words.details}</h2>
<form id="album" method="post" action="${setting.baseUrl}/library/albums/${album.id}"><input type="hidden" name="form_token" value="${formToken}"><input type="hidden" name="etag" value="${album.etag}">
${albumFields(typed ?? album, setting)}<p class="said" id="said" role="status" dir="auto"></p>
<div class="actions"><button type="submit" class="primary">${words.save}</button></div></form></section>
`
}

function items({ clips, mayWrite }: OwnAlbum, setting: Setting): Html {
  const words = ownAlbumWords[setting.language]
  if (clips.length === 0) return html`<p class="empty">${words.empty}</p>\n`
  const acts = ['first', 'up', 'down', 'out'] as const
  const buttons = (shown: ShownClip) =>
    html`<div class="actions scripted">${acts.map((act) => html`<button type="button" class="quiet" data-act="${act}" aria-label="${words[act]}: ${nameOf(shown)}">${words[act]}</button>`)}</div>`
  const item = (shown: ShownClip) =>
    html`<li class="clip${shown.clip.nsfw && ' sensitive'}" data-id="${shown.clip.id}">
${cardBody(shown, setting)}${mayWrite && buttons(shown)}</li>
`
  return html`<ol class="grid" id="items">\n${clips.map(item)}</ol>\n`
}

/** Texts for other pages. A private album has none: its addresses need a link. */
function copies({ page, embed, oembed, visibility }: AlbumDetails, { language }: Setting): Html {
  const words = ownAlbumWords[language]
  const feed = visibility === 'public' ? [[words.feed, `${page}/feed.xml`] as const] : []
  return copyList([[words.page, page], ['iframe', embed], ['oEmbed', oembed], ...feed], language)
}
