// /ui/account/confirm: a fresh proof for a change that demands one, by the password; then back to the page of the
// change (`next`). Users without a password sign in again by any other way.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import type { SessionBody } from '../../../core/sessions/issue-tokens.ts'
import { provenUser } from '../../../core/users/proven-addresses.ts'
import { fill } from '../../../words/language.ts'
import { leaveWords } from '../../../words/pages/account/leave.ts'
import { signInWords } from '../../../words/pages/sign-in.ts'
import { nameOf } from '../sign-in.ts'
import { accountPage, type Own, showAccount } from './account-page.ts'

export const confirmPage = accountPage({
  name: 'confirm',
  get: (own) => showConfirm(own),
  async post(own) {
    const { visit, caller } = own
    const { email, phone } = provenUser(caller.user)
    const { password = '' } = visit.form
    const address = email ? { email } : { phone }
    const answer = await visit.api<SessionBody>('POST', '/token?grant_type=password', { ...address, password })
    return answer.ok ? visit.signedIn(answer.body) : showConfirm(own, visit.explain(answer))
  },
})

function showConfirm(own: Own, problem?: string) {
  const { visit, caller } = own
  const words = { ...visit.words(signInWords), ...visit.words(leaveWords) }
  const name = nameOf(caller.user)
  const hasPassword = caller.user.has_password && name !== undefined
  return showAccount(own, {
    ...{ title: words.confirm, problem },
    body: [
      html`<p>${name === undefined ? words.asGuest : fill(words.asUser, { name })}</p>\n<p>${words.confirmText}</p>\n`,
      hasPassword &&
        visit.formOf({
          body: [
            field({ name: 'username', label: words.email, value: name, readonly: true, autocomplete: 'username' }),
            field({
              ...{ name: 'password', type: 'password', label: words.password, autocomplete: 'current-password' },
              ...{ required: true, autofocus: true },
            }),
            button({ label: words.goOn }),
          ],
        }),
      html`<p class="links"><a href="${visit.link('/ui/sign-in', { prompt: 'login' })}">${words.otherWay}</a></p>\n`,
    ],
  })
}
