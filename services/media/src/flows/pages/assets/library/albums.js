// Choice of an album for clips, or of a new one.
import { html } from '../lit.js'
import { call } from '../owner/api.js'
import { closeAfter, openDialog } from '../owner/dialog.js'
import { data, text } from '../owner/page-data.js'
import { toastFailure } from '../owner/toast.js'

/** @typedef {{ action: 'album', album: string }} AlbumAct */

/**
 * Adds clips to an album that the reader chooses; resolves with the outcome.
 * @template Outcome
 * @param {number} count @param {(act: AlbumAct) => Promise<Outcome>} run @returns {Promise<Outcome | undefined>}
 */
export async function chooseAlbum(count, run) {
  try {
    return await ask(count, await listAlbums(), run)
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
 * @template Outcome
 * @param {number} count @param {{ id: string, title: string }[]} albums
 * @param {(act: AlbumAct) => Promise<Outcome>} run
 * @returns {Promise<Outcome | undefined>}
 */
const ask = (count, albums, run) =>
  openDialog(text('albumTitle', { count }), (/** @type {(outcome?: Outcome) => void} */ close) => {
    /** Albums made here: another attempt to add clips makes no second. @type {Map<string, string>} */
    const made = new Map()
    const idOf = async (/** @type {string} */ title) => {
      if (!made.has(title)) {
        const { body } = await call('albums', { method: 'POST', body: { title, visibility: 'unlisted' } })
        made.set(title, body.id)
      }
      return made.get(title) ?? ''
    }
    const send = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault()
      const form = /** @type {HTMLFormElement} */ (event.target)
      const given = new FormData(form)
      const [id = '', title = ''] = ['album', 'title'].map((name) => String(given.get(name) ?? '').trim())
      if (!id && !title) return
      void closeAfter(form, close, async () => run({ action: 'album', album: title ? await idOf(title) : id }))
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
  })
