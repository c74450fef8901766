// /ui/new-password: sets the password of the signed-in user, after a recovery, an invitation or the link of the command
// `admin create`. An earlier page may carry `next`.
import { button, field } from '@services/common/pages/forms'
import { hasVerifiedFactor } from '../../core/factors/assurance.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { recoverWords } from '../../words/pages/recover.ts'
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
    if (NEW_REFUSED.includes(answer.code)) return visit.retry({ error: visit.explain(answer), problem: '' })
    const needsCode = answer.code === 'reauthentication_needed'
    const sent = needsCode ? await visit.api('GET', '/reauthenticate', undefined, { as: caller }) : answer
    return visit.retry({ problem: visit.explain(sent.ok ? answer : sent), error: '', asks: answer.code })
  },
}

/** An administrator without an application goes to the console, which may demand a second factor first. */
function nextOf({ deps: { config }, flow }: Visit, { user }: BrowserCaller): string | undefined {
  const isAdmin = config.jwt.adminRoles.includes(String(user.app_metadata.role))
  if (!isAdmin || !config.console.enabled || flow.redirect_to !== undefined) return undefined
  if (config.console.requiresMfa && !hasVerifiedFactor(user)) return '/ui/account/factors'
  // A port of its own gives the console another address.
  return config.console.port === undefined ? '/console/sign-in' : undefined
}

/** Refusals of the new password itself. */
const NEW_REFUSED = ['weak_password', 'same_password']

function showNewPassword(visit: Visit, { user }: BrowserCaller) {
  const words = visit.words(recoverWords)
  const name = nameOf(user)
  const { error, problem, asks = '' } = visit.carried
  const asksCurrent = asks.startsWith('current_password')
  const asksNonce = asks.startsWith('reauthentication')
  return visit.show({
    title: words.newTitle,
    problem: problem || undefined,
    body: visit.formOf({
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
  })
}
