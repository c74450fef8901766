import { type Html, html } from '../html.ts'

/** Sentence above the content: a refusal is read out at once, other news when the reader pauses. */
export const notice = (kind: 'problem' | 'news', text: string): Html =>
  html`<p class="notice ${kind}" role="${kind === 'problem' ? 'alert' : 'status'}">${text}</p>\n`
