// The warning before the session of the console ends, while typed text can still be saved. The service alone ends it.
import { api, onAnswer } from './api.js'
import { openDialog } from './kit/dialog.js'
import { toastFailure } from './kit/toast.js'
import { html } from './lit.js'

/** Part of the time without a request after which the reader is warned: 25 of 30 minutes. */
const WARNED_AFTER = 5 / 6

/** Time before the end of the whole session. */
const WARNED_BEFORE_MS = 300_000

/** A request in any tab keeps the session. */
const tabs = new BroadcastChannel('console-session')

/**
 * Begins with the session; returns the function that ends it.
 * @param {{ idle_seconds: number, seconds_left: number }} session
 */
export function warnOfEnd({ idle_seconds: idleSeconds, seconds_left: secondsLeft }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let idle
  let dismiss = () => {}
  const restart = () => {
    clearTimeout(idle)
    dismiss()
    idle = setTimeout(
      () => {
        dismiss = warnOfIdleness()
      },
      idleSeconds * WARNED_AFTER * 1000,
    )
  }
  const whole = setTimeout(warnOfLastMinutes, Math.max(0, secondsLeft * 1000 - WARNED_BEFORE_MS))
  onAnswer(() => {
    restart()
    tabs.postMessage('used')
  })
  tabs.onmessage = restart
  restart()
  return () => {
    onAnswer(() => {})
    tabs.onmessage = null
    clearTimeout(idle)
    clearTimeout(whole)
  }
}

/** Returns the function that dismisses the warning, as a request has kept the session. */
function warnOfIdleness() {
  let dismiss = () => {}
  void openDialog('Are you still there?', (/** @type {() => void} */ close) => {
    dismiss = close
    const stay = async () => {
      close()
      await api.get('/console/session').catch(toastFailure)
    }
    return html`
      <p>Nothing was asked of the service for a while. Your session ends soon, and what you have typed is lost with it.</p>
      <div class="actions"><button type="button" class="primary" @click=${stay}>Stay signed in</button></div>`
  })
  return dismiss
}

const warnOfLastMinutes = () =>
  openDialog(
    'Your session ends in a few minutes',
    (/** @type {() => void} */ close) => html`
      <p>A sign-in is good for some hours. Save what you have typed, then sign out and in again.</p>
      <div class="actions"><button type="button" class="primary" @click=${() => close()}>Close</button></div>`,
  )
