// /ui/new-password: sets the password of the signed-in user, after a recovery, an invitation or the link of the command
// `admin create`. An earlier page may carry `next`.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { hasVerifiedFactor } from '../../core/factors/assurance.ts'
import { isAdministrator } from '../../core/users/is-administrator.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { passwordWords } from '../../words/pages/account/password.ts'
import { recoverWords } from '../../words/pages/recover.ts'
import { signInWords } from '../../words/pages/sign-in.ts'
import { signUpWords } from '../../words/pages/sign-up.ts'
import { goOn } from './go-on.ts'
import { nameOf } from './sign-in.ts'

export const NEW_PASSWORD_PATH = '/ui/new-password'

export const newPasswordPage: Page = {
  path: NEW_PASSWORD_PATH,
  async get(visit) {
    const caller = await visit.caller()
    return caller ? showNewPassword(visit, caller) : visit.toSignIn()
  },
  async post(visit) {
    const caller = await visit.caller()
    if (!caller) return visit.toSignIn()
    const { password = '', current_password, nonce } = visit.form
    const answer = await visit.api('PUT', '/user', { password, current_password, nonce }, { as: caller })
    if (answer.ok) return goOn(visit, caller, nextOf(visit, caller))
    if (answer.code === 'insufficient_aal') {
      const hasFactor = hasVerifiedFactor(caller.user)
      return hasFactor ? visit.goTo('/ui/factor', { query: { next: visit.path } }) : visit.toSetUp(visit.path)
    }
    // Set by the first press of two, or long before.
    if (answer.code === 'same_password') return visit.retry({ error: '', problem: '', asks: '', same: 'yes' })
    if (answer.code === 'weak_password') return visit.retry({ error: visit.explain(answer), problem: '' })
    const needsCode = answer.code === 'reauthentication_needed'
    const sent = needsCode ? await visit.api('GET', '/reauthenticate', undefined, { as: caller }) : answer
    return visit.retry({ problem: visit.explain(sent.ok ? answer : sent), error: '', asks: answer.code })
  },
}

/** An administrator without an application goes to the console, which may demand a second factor first. */
function nextOf({ deps: { config }, flow }: Visit, { user }: BrowserCaller): string | undefined {
  if (!isAdministrator(config.jwt, user) || !config.console.enabled || flow.redirect_to !== undefined) return undefined
  if (config.console.requiresMfa && !hasVerifiedFactor(user)) return '/ui/account/factors'
  // A port of its own gives the console another address.
  return config.console.port === undefined ? '/console/sign-in' : undefined
}

function showNewPassword(visit: Visit, { user }: BrowserCaller) {
  const words = visit.words(recoverWords)
  const name = nameOf(user)
  const { error, problem, asks = '', same } = visit.carried
  const asksCurrent = asks.startsWith('current_password')
  const asksNonce = asks.startsWith('reauthentication')
  return visit.show({
    title: words.newTitle,
    problem: problem || undefined,
    news: same && visit.words(passwordWords).already,
    body: [
      same && html`<p><a class="button" href="${visit.link('/ui/sign-in')}">${visit.words(signInWords).goOn}</a></p>\n`,
      visit.formOf({
        body: [
          // Browsers store the password under this name.
          name !== undefined &&
            field({ name: 'account', label: words.account, value: name, readonly: true, autocomplete: 'username' }),
          asksCurrent &&
            field({
              ...{ name: 'current_password', type: 'password', label: words.current, required: true },
              autocomplete: 'current-password',
            }),
          asksNonce &&
            field({
              ...{ name: 'nonce', label: words.nonce, required: true, maxlength: 64 },
              ...{ autocomplete: 'one-time-code', inputmode: 'numeric' },
            }),
          field({
            ...{
              name: 'password',
              type: 'password',
              label: words.password,
              autocomplete: 'new-password',
              error: error || undefined,
            },
            ...{ required: true, autofocus: true },
            hint: fill(visit.words(signUpWords).passwordHint, { length: visit.deps.config.passwords.minLength }),
          }),
          button({ label: words.save }),
        ],
      }),
    ],
  })
}
