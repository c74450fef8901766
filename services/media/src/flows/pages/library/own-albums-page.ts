// All albums of an owner, with the form for a new one. It works without script.
import { type Html, html } from '@services/common/html'
import { notice } from '@services/common/pages/notices'
import { MAX_DESCRIPTION, type RawAlbumFields } from '../../../core/albums/album-fields.ts'
import type { AlbumDetails } from '../../../core/albums/album-view.ts'
import { libraryWords } from '../../../words/library.ts'
import { ownAlbumWords } from '../../../words/own-albums.ts'
import { ownClipWords } from '../../../words/own-clip.ts'
import { VISIBILITIES } from './address.ts'
import type { Setting } from './card.ts'

export interface OwnAlbums {
  albums: readonly AlbumDetails[]
  isFirst: boolean
  nextCursor: string | null
  mayWrite: boolean
  formToken: string
  /** Fields of a form that was refused, and why. */
  typed?: RawAlbumFields | undefined
  problem?: string | undefined
}

export function ownAlbumsPage(
  { albums, isFirst, nextCursor, mayWrite, formToken, typed, problem }: OwnAlbums,
  setting: Setting,
): Html {
  const { language, baseUrl } = setting
  const words = ownAlbumWords[language]
  const isEmpty = albums.length === 0 && isFirst
  return html`${problem && notice('problem', problem)}${
    mayWrite
      ? html`<details class="part"${(isEmpty || typed) && html` open`}><summary>${words.create}</summary>
<form method="post" action="${baseUrl}/library/albums"><input type="hidden" name="form_token" value="${formToken}">
${albumFields(typed ?? {}, setting)}<div class="actions"><button type="submit" class="primary">${words.make}</button></div></form></details>
`
      : html`<p class="hint">${words.noWrite}</p>\n`
  }${!isFirst && html`<p class="way"><a href="${baseUrl}/library/albums">${words.toBeginning}</a></p>\n`}${
    isEmpty
      ? html`<p class="empty">${words.noneYet}</p>\n`
      : html`<ol class="grid">\n${albums.map((album) => albumCard(album, setting))}</ol>\n`
  }${nextCursor !== null && html`<p class="way"><a rel="next" href="${baseUrl}/library/albums?cursor=${nextCursor}">${words.next}</a></p>\n`}`
}

function albumCard(
  { id, title, cover, count, visibility }: AlbumDetails,
  { language, formats, baseUrl }: Setting,
): Html {
  // The poster in the width of a card; its query counts the changes.
  const url = cover?.replace(/\.jpg(?=$|\?)/, '/w320.webp')
  return html`<li class="clip"><a href="${baseUrl}/library/albums/${id}"><span class="poster">${url && html`<img src="${url}" width="320" height="200" alt="" loading="lazy" decoding="async">`}</span><span class="name" dir="auto">${title}</span></a>
<p class="states">${ownAlbumWords[language].clips}: ${formats.number(count)} <span class="badge">${libraryWords[language][visibility]}</span></p></li>
`
}

/** Fields of a new album, and of one that is changed. */
export function albumFields({ title, description, visibility }: RawAlbumFields, { language }: Setting): Html {
  const words = ownAlbumWords[language]
  const hints = ownClipWords[language].visibilityHints
  return html`<div class="field"><label for="f-title">${words.name}</label>
<input id="f-title" name="title" value="${title}" maxlength="200" required autocomplete="off" dir="auto"></div>
<div class="field"><label for="f-description">${words.description}</label>
<textarea id="f-description" name="description" maxlength="${MAX_DESCRIPTION}" rows="3" dir="auto">${description}</textarea></div>
<div class="field"><label for="f-visibility">${words.visibility}</label>
<select id="f-visibility" name="visibility">${VISIBILITIES.map((value) => html`<option value="${value}"${value === (visibility ?? 'public') && html` selected`}>${hints[value]}</option>`)}</select></div>
`
}
