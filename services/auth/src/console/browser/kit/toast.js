// Short messages after an act. The regions stand in the shell, so that screen readers know them before a text appears.
import { ApiFailure } from '../api.js'
import { html, render } from '../lit.js'

/** Two lines are read by then. A failure stays until it is dismissed. */
const SHOWN_MS = 6_000

/** Messages of a kind at once; the oldest goes first. */
const MAX_SHOWN = 3

/** @param {string} text @param {'done' | 'failed'} [kind] */
export function toast(text, kind = 'done') {
  const region = /** @type {HTMLElement} */ (document.getElementById(kind))
  const message = document.createElement('div')
  message.className = kind === 'done' ? 'notice' : 'notice problem'
  if (kind === 'done') {
    message.textContent = text
    setTimeout(() => message.remove(), SHOWN_MS)
  } else {
    const dismiss = html`<button type="button" class="quiet" @click=${() => message.remove()}>Dismiss</button>`
    render(html`<p>${text}</p>${dismiss}`, message)
  }
  region.append(message)
  if (region.childElementCount > MAX_SHOWN) region.firstElementChild?.remove()
  uncover(region)
}

/** Scrolls until the button that was pressed is above the messages. @param {HTMLElement} region */
function uncover(region) {
  const pressed = document.activeElement?.getBoundingClientRect()
  const top = region.parentElement?.getBoundingClientRect().top
  if (pressed && top !== undefined && pressed.bottom > top) scrollBy(0, pressed.bottom - top)
}

/** Removes all messages, as their reader is signed out. */
export function clearToasts() {
  for (const kind of ['done', 'failed']) document.getElementById(kind)?.replaceChildren()
}

/** @param {unknown} error */
export function toastFailure(error) {
  if (error instanceof ApiFailure && error.endsSession) return
  toast(error instanceof Error ? error.message : String(error), 'failed')
}

/**
 * Does an act and says that it is done, or why it is not. Resolves with whether it was.
 * @param {() => Promise<unknown>} work @param {string} doneText @param {() => unknown} [after]
 */
export async function act(work, doneText, after) {
  try {
    await work()
  } catch (error) {
    toastFailure(error)
    return false
  }
  toast(doneText)
  await after?.()
  return true
}
