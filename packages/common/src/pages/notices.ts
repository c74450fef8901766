import { type Html, html } from '../html.ts'

/** Sentence above the content: a refusal is read out at once, other news when the reader pauses. */
export const notice = (kind: 'problem' | 'news', text: string): Html =>
  html`<p class="notice ${kind}" role="${kind === 'problem' ? 'alert' : 'status'}">${text}</p>\n`

/** Empty place for messages that a script adds and removes, each a `p.notice`. */
export const toasts: Html = html`<div class="toasts" role="status" aria-live="polite"></div>\n`
