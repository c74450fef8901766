// /ui/account/password: a new password, or the first one. All other sessions end with it.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { fill } from '../../../words/language.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { passwordWords } from '../../../words/pages/account/password.ts'
import { nameOf } from '../sign-in.ts'
import { accountPage, done, type Own, refused, showAccount } from './account-page.ts'

export const passwordPage = accountPage({
  name: 'password',
  get: (own) => showPassword(own),
  async post(own) {
    const { visit } = own
    const words = visit.words(passwordWords)
    if (visit.form.way === 'nonce') {
      const sent = await own.api('GET', '/reauthenticate')
      return sent.ok ? done(own, words.sent) : refused(own, sent, (problem) => showPassword(own, problem))
    }
    const { password = '', current_password, nonce } = visit.form
    const proof = { ...(current_password && { current_password }), ...(nonce && { nonce }) }
    const answer = await own.api('PUT', '/user', { password, ...proof })
    if (answer.ok) return done(own, words.changed)
    // Set by the first press of two, or long before.
    if (answer.code === 'same_password') return done(own, words.already)
    // Here a code replaces the recent sign-in, and the form asks for it.
    const asks = answer.code === 'reauthentication_needed' && visit.deps.config.passwords.requireReauthentication
    return asks
      ? showPassword(own, visit.explain(answer))
      : refused(own, answer, (problem) => showPassword(own, problem))
  },
})

function showPassword(own: Own, problem?: string) {
  const { visit, caller } = own
  const words = visit.words(passwordWords)
  const { minLength, requireCurrent, requireReauthentication } = visit.deps.config.passwords
  return showAccount(own, {
    title: visit.words(accountWords).password,
    problem,
    body: [
      html`<p class="hint">${words.hint}</p>\n`,
      visit.formOf({
        body: [
          ownName(own),
          requireCurrent && caller.user.has_password && currentPassword(own),
          field({
            ...{ name: 'password', type: 'password', label: words.label, autocomplete: 'new-password', required: true },
            hint: fill(words.atLeast, { count: minLength }),
          }),
          requireReauthentication &&
            field({ name: 'nonce', label: words.code, autocomplete: 'one-time-code', inputmode: 'numeric' }),
          button({ label: visit.words(accountWords).save }),
        ],
      }),
      requireReauthentication &&
        visit.formOf({ fields: { way: 'nonce' }, body: button({ label: words.send, kind: 'quiet' }) }),
    ],
  })
}

/** Hidden address, by which managers of passwords find the account. */
export const ownName = ({ caller }: Own) =>
  html`<input type="text" name="username" autocomplete="username" value="${nameOf(caller.user)}" hidden>\n`

/** Field for the present password, for changes that demand it. */
export const currentPassword = ({ visit }: Own, id = 'current-password') =>
  field({
    ...{ id, name: 'current_password', type: 'password', label: visit.words(accountWords).currentPassword },
    ...{ autocomplete: 'current-password', required: true },
  })
