// Page with one button, between a link and its effect: scanners, prefetches and strangers' links open addresses but
// press no buttons. It works without scripts; callers give the texts. Its script: assets/button.js.
import { html } from '@services/common/html'
import { button, hiddenFields } from '@services/common/pages/forms'
import type { ShownPage } from './show-page.ts'

export const BUTTON_SCRIPT = 'button.js'

export interface ButtonPage extends Pick<ShownPage, 'language'> {
  /** Plain text, like the text and the button. */
  heading: string
  text: string
  button: string
  /** Target of the form, relative to the page. */
  action: string
  fields?: Record<string, string>
}

export const buttonPage = ({ language, heading, text, button: label, action, fields = {} }: ButtonPage): ShownPage => ({
  ...{ language, title: heading, scripts: [BUTTON_SCRIPT], hidesAddress: true },
  body: html`<p>${text}</p>
<form method="post" action="${action}">
${hiddenFields(fields)}${button({ label })}</form>
`,
})
