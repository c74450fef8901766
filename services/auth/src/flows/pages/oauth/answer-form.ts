import { type Html, type HtmlValue, html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import type { Visit } from '../../../http/hosted/visit.ts'
import { fill } from '../../../words/language.ts'
import { consentWords } from '../../../words/pages/oauth/consent.ts'

/** Form of an answer: `answer` is `allow` or `deny`. */
export function answerForm(visit: Visit, fields: Record<string, string> = {}): Html {
  const words = visit.words(consentWords)
  return visit.formOf({
    fields,
    body: [
      button({ label: words.allow, name: 'answer', value: 'allow' }),
      button({ label: words.deny, name: 'answer', value: 'deny', kind: 'quiet' }),
    ],
  })
}

/** Names the servers that the tokens are for; nothing where they are for this one. */
export const resourceLine = (visit: Visit, resources: readonly string[]): HtmlValue =>
  resources.length > 0 &&
  html`<p>${fill(visit.words(consentWords).resources, { resources: resources.join(', ') })}</p>\n`
