// The dialog of a new secret, which no other answer has.
import { html } from '../lit.js'
import { openDialog } from './dialog.js'
import { copyable } from './parts.js'

/** Shows a secret until the reader has stored it. @param {string} title @param {string} text @param {string} secret */
export const showSecret = (title, text, secret) =>
  openDialog(
    title,
    (/** @type {() => void} */ close) => html`
    <p>${text}</p>
    <p>${copyable(secret)}</p>
    <div class="actions"><button type="button" class="primary" @click=${() => close()}>I have stored it</button></div>`,
  )
