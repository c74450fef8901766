import { type Html, html } from '@services/common/html'
import { button, field, hiddenFields } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import type { BrowserSession } from '../../../http/browser-session.ts'
import type { Language } from '../../../words/language.ts'
import { sessionWords } from '../../../words/session.ts'
import type { Site } from '../document.ts'
import type { OwnerPage } from '../owner-page.http.ts'

/** Reason why a visitor has to sign in, by its text. */
export type Problem = 'refused' | 'ended' | 'tooMany' | 'wrongOrigin'

/** The form that takes a token. A refused token is not shown again. */
export function signInPage(site: Site, language: Language, next: string, problem?: Problem): OwnerPage {
  const words = sessionWords[language]
  return {
    ...{ language, title: words.signIn },
    body: html`${problem && notice('problem', words[problem])}<p class="hint">${words.lifeHint}</p>
<form method="post" action="${site.baseUrl}/session">
${hiddenFields({ next })}${field({
  ...{ name: 'token', label: words.token, type: 'password', hint: words.tokenHint, autocomplete: 'off' },
  ...{ required: true, autofocus: true, maxlength: 200 },
})}
${button({ label: words.submit })}</form>`,
  }
}

/** The page of a browser that is signed in. */
export function signedInPage(site: Site, language: Language, { token, formToken }: BrowserSession): OwnerPage {
  const words = sessionWords[language]
  const form = (label: string, all: string | undefined): Html =>
    html`<form method="post" action="${site.baseUrl}/session/end">
${hiddenFields({ form_token: formToken, all })}${button({ label, kind: 'quiet' })}</form>
`
  return {
    ...{ language, title: words.signedIn },
    body: html`<p><strong>${token.name}</strong> (${token.prefix}&hellip;)</p>
<p>${words.scopes}: ${token.scopes.join(', ')}</p>
${form(words.signOut, undefined)}${form(words.signOutEverywhere, '1')}`,
  }
}
