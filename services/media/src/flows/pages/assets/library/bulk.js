// Acts on several clips, by POST /media/bulk. Failures are listed by clip; typed text stays until an act is done.
import { html, nothing } from '../lit.js'
import { address, call, wordsFor } from '../owner/api.js'
import { confirm, openDialog } from '../owner/dialog.js'
import { text } from '../owner/page-data.js'
import { sendOnce } from '../owner/request-keys.js'
import { toast, toastFailure } from '../owner/toast.js'
import { chooseAlbum } from './albums.js'

/** @typedef {Record<string, unknown> & { action: string }} Act */

const MOST_IN_ARCHIVE = 100

const LIFETIMES = [
  ['', 'forever'],
  ['1h', 'hour'],
  ['1d', 'day'],
  ['7d', 'week'],
  ['30d', 'month'],
]

/**
 * Buttons for chosen clips.
 * @param {string[]} ids @param {{ write: boolean, delete: boolean }} may @param {(deleted: string[]) => void} after
 */
export function actsOn(ids, may, after) {
  const count = ids.length
  const act = async (/** @type {Act | undefined} */ chosen) => {
    if (chosen) after(await change(ids, chosen))
  }
  const button = (/** @type {string} */ key, /** @type {() => unknown} */ onClick, kind = 'quiet') =>
    html`<button type="button" class=${kind} @click=${onClick}>${text(key)}</button>`
  const remove = async () => {
    const title = count === 1 ? text('deleteOne') : text('deleteTitle', { count })
    const isSure = await confirm({ title, question: text('deleteText'), action: text('deleteForGood') })
    await act(isSure ? { action: 'delete' } : undefined)
  }
  return html`${
    may.write
      ? html`${button('tag', async () => act(await askTags(count)))}
        ${button('visibility', async () =>
          act(
            await askOne('visibility', count, [['public'], ['unlisted'], ['private']], (visibility) => ({
              visibility,
            })),
          ),
        )}
        ${button('sensitive', async () =>
          act(
            await askOne('sensitive', count, [['yes'], ['no']], (answer) => ({
              action: 'nsfw',
              nsfw: answer === 'yes',
            })),
          ),
        )}
        ${button('lifetime', async () =>
          act(await askOne('lifetime', count, LIFETIMES, (span) => ({ expires_in: span || null }))),
        )}
        ${button('album', async () => act(await chooseAlbum(count)))}`
      : nothing
  }
  ${button('zip', () => download(ids))}${may.delete ? button('delete', remove, 'danger') : nothing}`
}

/** @param {string[]} ids */
function download(ids) {
  if (ids.length > MOST_IN_ARCHIVE) return toastFailure(new Error(text('zipTooMany')))
  const link = document.createElement('a')
  link.href = address(`media/archive?ids=${ids.join(',')}`)
  link.download = ''
  link.click()
}

/** Changes clips; returns those that are gone. @param {string[]} ids @param {Act} act @returns {Promise<string[]>} */
async function change(ids, act) {
  const count = ids.length
  toast(text('stillWorking'))
  try {
    const request = { ids, ...act }
    const { body } = await sendOnce(request, (key) =>
      call('media/bulk', { method: 'POST', body: request, headers: { 'idempotency-key': key } }),
    )
    const failed = body.results.filter((/** @type {{ ok: boolean }} */ { ok }) => !ok)
    if (failed.length > 0) await showFailures(failed, count)
    else toast(text('done', { count }))
    const done = body.results.filter((/** @type {{ ok: boolean }} */ { ok }) => ok)
    return act.action === 'delete' ? done.map((/** @type {{ id: string }} */ { id }) => id) : []
  } catch (error) {
    toast('')
    toastFailure(error)
    return []
  }
}

/** @param {{ id: string, code: string, message: string }[]} failed @param {number} count */
const showFailures = (failed, count) =>
  openDialog(
    text('someFailed', { failed: failed.length, count }),
    (/** @type {() => void} */ close) => html`
    <ul class="rows">${failed.map(({ id, code, message }) => html`<li dir="auto">${nameOf(id)}: ${wordsFor(code, message)}</li>`)}</ul>
    <div class="actions"><button type="button" class="quiet" @click=${() => close()}>${text('close')}</button></div>`,
  )

/** @param {string} id */
const nameOf = (id) => document.getElementById(`name-${id}`)?.textContent ?? id

/** @param {number} count @returns {Promise<Act | undefined>} */
const askTags = (count) =>
  openDialog(text('tagTitle', { count }), (/** @type {(act?: Act) => void} */ close) => {
    const send = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault()
      const form = /** @type {HTMLFormElement} */ (event.target)
      const tags = String(new FormData(form).get('tags')).split(',')
      const action = event.submitter?.getAttribute('value') ?? 'tag'
      close({ action, tags: tags.map((tag) => tag.trim()).filter(Boolean) })
    }
    return html`<form @submit=${send}>
      <div class="field"><label for="bulk-tags">${text('tag')}</label>
        <p class="hint" id="bulk-tags-hint">${text('tagHint')}</p>
        <input id="bulk-tags" name="tags" required maxlength="2000" autocomplete="off" dir="auto" aria-describedby="bulk-tags-hint" autofocus></div>
      <div class="actions">
        <button type="button" class="quiet" @click=${() => close()}>${text('cancel')}</button>
        <button type="submit" class="quiet" value="untag">${text('remove')}</button>
        <button type="submit" class="primary" value="tag">${text('add')}</button>
      </div></form>`
  })

/**
 * Asks for one of some values.
 * @param {string} name @param {number} count @param {string[][]} options Values with the names of their texts.
 * @param {(value: string) => Record<string, unknown>} toMembers @returns {Promise<Act | undefined>}
 */
const askOne = (name, count, options, toMembers) =>
  openDialog(text(`${name}Title`, { count }), (/** @type {(act?: Act) => void} */ close) => {
    const choose = (/** @type {string} */ value) => () => close({ action: name, ...toMembers(value) })
    return html`<div class="actions choices">
      ${options.map(([value = '', key = value]) => html`<button type="button" class="quiet" @click=${choose(value)}>${text(key)}</button>`)}
      <button type="button" class="quiet" autofocus @click=${() => close()}>${text('cancel')}</button></div>`
  })
