// Short messages after an act. The regions stand in the shell, so that screen readers know them before a text appears.
import { ApiFailure } from '../api.js'

const SHOWN_MS = 6_000

/** @param {string} text @param {'done' | 'failed'} [kind] */
export function toast(text, kind = 'done') {
  const region = document.getElementById(kind === 'done' ? 'done' : 'failed')
  const message = document.createElement('p')
  message.className = kind === 'done' ? 'notice' : 'notice problem'
  message.textContent = text
  region?.replaceChildren(message)
  setTimeout(() => message.remove(), SHOWN_MS)
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
