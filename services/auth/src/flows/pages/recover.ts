// /ui/recover: a code for a user who has forgotten the password. It leads to /ui/new-password, by the code or by the
// link of the same mail.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { recoverWords } from '../../words/pages/recover.ts'
import { signInWords } from '../../words/pages/sign-in.ts'
import { typedAddress } from './address.ts'
import { NEW_PASSWORD_PATH } from './new-password.ts'
import { requestCode, sendCode } from './send-code.ts'
import { addressField } from './sign-in.ts'

export const recoverPage: Page = {
  path: '/ui/recover',
  get: (visit) => showRecover(visit),
  async post(visit) {
    // The page that asks for the password leads here, with the address.
    const { address: typed = '', way } = visit.form
    if (way === 'ask') return visit.goTo(visit.path, { carry: { typed } })
    const address = typedAddress(visit, typed)
    if (!address) return visit.retry({ typed, error: visit.words(signInWords).notAnAddress })
    visit.flow.next = NEW_PASSWORD_PATH
    // A text message signs in; there is none for a recovery.
    if ('phone' in address) return sendCode(visit, address)
    return requestCode(visit, address, { url: '/recover', type: 'recovery' })
  },
}

function showRecover(visit: Visit) {
  const words = visit.words(recoverWords)
  return visit.show({
    title: words.title,
    body: [
      html`<p>${words.text}</p>\n`,
      visit.formOf({ body: [addressField(visit), button({ label: words.send })] }),
      html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${words.back}</a></p>\n`,
    ],
  })
}
