// Acts on several clips, by POST /media/bulk. Failures are listed by clip; typed text stays until an act is done.
import { html, nothing } from '../lit.js'
import { address, call, Refusal, send, wordsFor } from '../owner/api.js'
import { closeAfter, confirm, openDialog } from '../owner/dialog.js'
import { text } from '../owner/page-data.js'
import { sendOnce } from '../owner/request-keys.js'
import { toast, toastFailure } from '../owner/toast.js'
import { chooseAlbum } from './albums.js'

/** @typedef {Record<string, unknown> & { action: string }} Act */
/** @typedef {{ act: Act, results: { id: string, ok: boolean, code: string, message: string }[] }} Outcome */

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
  const run = (/** @type {Act} */ act) => change(ids, act)
  const act = async (/** @type {Act | undefined} */ chosen) => {
    if (chosen) await whileBusy(async () => finish(await run(chosen)))
  }
  const finish = async (/** @type {Outcome | undefined} */ outcome) => {
    if (outcome) after(await report(outcome))
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
      ? html`${button('tag', async () => finish(await askTags(count, run)))}
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
        ${button('album', async () => finish(await chooseAlbum(count, run)))}`
      : nothing
  }
  ${button('zip', () => whileBusy(() => download(ids)))}${may.delete ? button('delete', remove, 'danger') : nothing}`
}

/** Takes no other act while one runs. @param {() => Promise<unknown>} act */
async function whileBusy(act) {
  const bar = /** @type {HTMLElement} */ (document.getElementById('bar'))
  const focused = /** @type {HTMLElement | null} */ (document.activeElement)
  bar.inert = true
  toast(text('stillWorking'))
  try {
    await act()
  } catch (error) {
    toast('')
    toastFailure(error)
  } finally {
    bar.inert = false
    if (document.activeElement === document.body) focused?.focus()
  }
}

/** The answer is a file that the browser saves, so refusals are asked for first. @param {string[]} ids */
async function download(ids) {
  if (ids.length > MOST_IN_ARCHIVE) throw new Error(text('zipTooMany'))
  const path = `media/archive?ids=${ids.join(',')}`
  await send(path, { method: 'HEAD' }).catch((error) => {
    // A HEAD has a status and no code.
    const reasons = new Map([
      [401, wordsFor('session_required', '')],
      [404, text('zipMissing')],
      [422, wordsFor('archive_too_large', '')],
      [429, wordsFor('rate_limited', '')],
    ])
    throw new Error((error instanceof Refusal && reasons.get(error.status)) || error.message)
  })
  const link = document.createElement('a')
  link.href = address(path)
  link.download = ''
  link.click()
  toast('')
}

/** @param {string[]} ids @param {Act} act @returns {Promise<Outcome>} */
async function change(ids, act) {
  const request = { ids, ...act }
  const { body } = await sendOnce(request, (key) =>
    call('media/bulk', { method: 'POST', body: request, headers: { 'idempotency-key': key } }),
  )
  return { act, results: body.results }
}

/** Says what was done; returns clips that are gone. @param {Outcome} outcome */
async function report({ act, results }) {
  const failed = results.filter(({ ok }) => !ok)
  toast(failed.length > 0 ? '' : text('done', { count: results.length }))
  if (failed.length > 0) await showFailures(failed, results.length)
  return act.action === 'delete' ? results.filter(({ ok }) => ok).map(({ id }) => id) : []
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

/** @param {number} count @param {(act: Act) => Promise<Outcome>} run @returns {Promise<Outcome | undefined>} */
const askTags = (count, run) =>
  openDialog(text('tagTitle', { count }), (/** @type {(outcome?: Outcome) => void} */ close) => {
    const send = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault()
      const form = /** @type {HTMLFormElement} */ (event.target)
      const given = String(new FormData(form).get('tags')).split(',')
      const tags = given.map((tag) => tag.trim()).filter(Boolean)
      const action = event.submitter?.getAttribute('value') ?? 'tag'
      void closeAfter(form, close, () => run({ action, tags }))
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
