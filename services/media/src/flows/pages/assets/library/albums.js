// Choice of an album for clips, or of a new one.
import { html } from '../lit.js'
import { call } from '../owner/api.js'
import { openDialog } from '../owner/dialog.js'
import { data, text } from '../owner/page-data.js'
import { toastFailure } from '../owner/toast.js'

/** @typedef {{ action: 'album', album: string }} AlbumAct */

/** @param {number} count @returns {Promise<AlbumAct | undefined>} */
export async function chooseAlbum(count) {
  try {
    const albums = await listAlbums()
    const chosen = await ask(count, albums)
    if (!chosen) return undefined
    if ('id' in chosen) return { action: 'album', album: chosen.id }
    const { body } = await call('albums', { method: 'POST', body: { title: chosen.title, visibility: 'unlisted' } })
    return { action: 'album', album: body.id }
  } catch (error) {
    toastFailure(error)
    return undefined
  }
}

/** The newest, which are the likely ones. @returns {Promise<{ id: string, title: string }[]>} */
export async function listAlbums() {
  const { body } = await call(`albums?limit=100&token=${data.token}`)
  return body.items
}

/**
 * @param {number} count @param {{ id: string, title: string }[]} albums
 * @returns {Promise<{ id: string } | { title: string } | undefined>}
 */
const ask = (count, albums) =>
  openDialog(
    text('albumTitle', { count }),
    (/** @type {(chosen?: { id: string } | { title: string }) => void} */ close) => {
      const send = (/** @type {SubmitEvent} */ event) => {
        event.preventDefault()
        const form = new FormData(/** @type {HTMLFormElement} */ (event.target))
        const [id, title] = ['album', 'title'].map((name) => String(form.get(name) ?? '').trim())
        if (title) close({ title })
        else if (id) close({ id })
      }
      return html`<form @submit=${send}>
      ${
        albums.length > 0
          ? html`<div class="field"><label for="bulk-album">${text('album')}</label>
            <select id="bulk-album" name="album">${albums.map(({ id, title }) => html`<option value=${id}>${title}</option>`)}</select></div>`
          : html`<p>${text('noAlbums')}</p>`
      }
      <div class="field"><label for="bulk-title">${text('newAlbum')}</label>
        <input id="bulk-title" name="title" maxlength="200" autocomplete="off" dir="auto"></div>
      <div class="actions">
        <button type="button" class="quiet" @click=${() => close()}>${text('cancel')}</button>
        <button type="submit" class="primary">${text('save')}</button>
      </div></form>`
    },
  )
