import { html } from '@services/common/html'
import { button, hiddenFields } from '@services/common/pages/forms'
import type { Config } from '../../../config.ts'
import { pageLanguage } from '../../../http/pages/page-words.ts'
import { applicationName } from '../../../http/pages/send-to.ts'
import type { ShownPage } from '../../../http/pages/show-page.ts'
import { fill } from '../../../words/language.ts'
import { frameWords } from '../../../words/pages/frame.ts'

/** A page that leads to the application by a press alone. */
export function pressPage(
  config: Pick<Config, 'pages' | 'siteUrl'>,
  acceptLanguage: string | undefined,
  location: string,
): ShownPage {
  const language = pageLanguage(config, { acceptLanguage })
  const { failed: title, goOn } = frameWords[language]
  const label = fill(goOn, { name: applicationName(config, location) })
  return { language, title, hidesAddress: true, body: html`<a href="${location}" class="button">${label}</a>\n` }
}

/** A page that posts an answer to the application at once, or by its button (OAuth 2.0 Form Post Response Mode). */
export function postingPage(
  config: Pick<Config, 'pages' | 'siteUrl'>,
  acceptLanguage: string | undefined,
  redirectUri: string,
  answer: Record<string, string>,
): ShownPage {
  const language = pageLanguage(config, { acceptLanguage })
  const { leaving, sentOn, goOn } = frameWords[language]
  const name = applicationName(config, redirectUri)
  return {
    ...{ language, title: leaving, hidesAddress: true, postsElsewhere: true, scripts: ['post-at-once.js'] },
    body: html`<p>${fill(sentOn, { name })}</p>
<form method="post" action="${redirectUri}">
${hiddenFields(answer)}${button({ label: fill(goOn, { name }) })}</form>
`,
  }
}
