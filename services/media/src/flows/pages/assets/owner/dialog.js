// Dialogs. The browser's own element holds the focus inside, closes on Escape and gives the focus back.
import { html, render } from '../lit.js'
import { text } from './page-data.js'

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
    const close = (/** @type {Result | undefined} */ value) => {
      result = value
      dialog.close()
    }
    render(html`<h2>${title}</h2>${content(close)}`, dialog)
    dialog.showModal()
  })
}

/**
 * Acts while the dialog of a form stays open, then closes it. A failure is shown inside, where typed text stays.
 * @template Result
 * @param {HTMLFormElement} form
 * @param {(result: Result) => void} close
 * @param {() => Promise<Result>} act
 */
export async function closeAfter(form, close, act) {
  const buttons = form.querySelectorAll('button')
  const focused = document.activeElement
  const place = form.querySelector('[role=alert]') ?? document.createElement('p')
  place.setAttribute('role', 'alert')
  place.className = 'problem'
  place.textContent = ''
  form.append(place)
  for (const button of buttons) button.disabled = true
  try {
    close(await act())
  } catch (error) {
    place.textContent = error instanceof Error ? error.message : String(error)
  }
  for (const button of buttons) button.disabled = false
  if (focused instanceof HTMLElement && form.contains(focused)) focused.focus()
}

/**
 * Asks before an act that cannot be undone. The focus is on the way back.
 * @param {{ title: string, question: string, action: string }} about
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, question, action }) {
  const isConfirmed = await openDialog(
    title,
    (/** @type {(result?: boolean) => void} */ close) => html`
    <p>${question}</p>
    <div class="actions">
      <button type="button" class="quiet" autofocus @click=${() => close(false)}>${text('cancel')}</button>
      <button type="button" class="danger" @click=${() => close(true)}>${action}</button>
    </div>`,
  )
  return isConfirmed === true
}
