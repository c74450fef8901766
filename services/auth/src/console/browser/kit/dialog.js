// Dialogs. The browser's own element holds the focus inside, closes on Escape and gives the focus back.
import { html, nothing, render } from '../lit.js'
import { toastFailure } from './toast.js'

/**
 * Opens a dialog; resolves with the value that it was closed with, undefined after Escape.
 * @template Result
 * @param {string} title
 * @param {(close: (result?: Result) => void) => unknown} content
 * @returns {Promise<Result | undefined>}
 */
export function openDialog(title, content) {
  const dialog = document.createElement('dialog')
  dialog.setAttribute('aria-label', title)
  document.body.append(dialog)
  return new Promise((resolve) => {
    /** @type {Result | undefined} */
    let result
    dialog.addEventListener('close', () => {
      dialog.remove()
      resolve(result)
    })
    // A browser that was refused once closes at the next Escape all the same, unless the key itself is refused.
    for (const type of ['cancel', 'keydown']) dialog.addEventListener(type, keepWhileBusy)
    const close = (/** @type {Result | undefined} */ value) => {
      result = value
      dialog.close()
    }
    render(html`<h2>${title}</h2>${content(close)}`, dialog)
    dialog.showModal()
  })
}

/** @param {Event} event */
function keepWhileBusy(event) {
  const { ariaBusy } = /** @type {Element} */ (event.currentTarget)
  const isDismissal = !(event instanceof KeyboardEvent) || event.key === 'Escape'
  if (ariaBusy === 'true' && isDismissal) event.preventDefault()
}

/**
 * Does the work of a dialog, which the reader cannot dismiss meanwhile. Resolves with whether it was done; a failure is
 * shown in `problem`, or as a toast where another page has closed the dialog.
 * @param {HTMLElement} problem @param {() => Promise<unknown>} work
 */
export async function workOf(problem, work) {
  const dialog = /** @type {HTMLElement} */ (problem.closest('dialog'))
  dialog.ariaBusy = 'true'
  problem.textContent = ''
  try {
    return (await work()) !== false
  } catch (error) {
    if (dialog.isConnected) problem.textContent = error instanceof Error ? error.message : String(error)
    else toastFailure(error)
    return false
  } finally {
    dialog.ariaBusy = null
  }
}

/** Closes the open dialogs, as the session that they belong to has ended. */
export const closeDialogs = () => {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close()
}

/**
 * Asks before an act that cannot be undone. The focus is on the way back.
 * @param {{ title: string, text: unknown, action: string, isDangerous?: boolean }} question
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, text, action, isDangerous = false }) {
  const isConfirmed = await openDialog(
    title,
    (/** @type {(result?: boolean) => void} */ close) => html`
    <p>${text || nothing}</p>
    <div class="actions">
      <button type="button" class="quiet" autofocus @click=${() => close(false)}>Cancel</button>
      <button type="button" class=${isDangerous ? 'danger' : 'primary'} @click=${() => close(true)}>${action}</button>
    </div>`,
  )
  return isConfirmed === true
}
