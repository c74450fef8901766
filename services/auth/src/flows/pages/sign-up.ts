// /ui/sign-up: a new account by address and password. The answer is the same for an address that has an account; its
// owner gets a mail that says so.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { signInWords } from '../../words/pages/sign-in.ts'
import { signUpWords } from '../../words/pages/sign-up.ts'
import { typedAddress } from './address.ts'
import { hasJustSignedIn } from './just-signed-in.ts'
import { arrivalOf, toCode, wasSentBefore } from './send-code.ts'
import { addressField, providerLinks } from './sign-in.ts'
import { signsUp } from './ways.ts'

export const signUpPage: Page = {
  path: '/ui/sign-up',
  get: async (visit) =>
    (await hasJustSignedIn(visit, visit.carried.typed)) ? visit.goTo('/ui/sign-in') : showSignUp(visit),
  async post(visit) {
    const { address: typed = '', password = '' } = visit.form
    const address = typedAddress(visit, typed)
    if (!address) return visit.goTo(visit.path, { carry: { typed, error: visit.words(signInWords).notAnAddress } })
    const { query, challenge } = arrivalOf(visit)
    const body = { ...address, password, ...('email' in address && challenge) }
    const answer = await visit.api<Partial<SessionBody>>('POST', `/signup${query}`, body)
    const type = 'email' in address ? 'signup' : 'sms'
    if (answer.ok) {
      const { body: made } = answer
      return made.access_token ? visit.signedIn(made as SessionBody) : toCode(visit, address, { type })
    }
    const problem = visit.explain(answer)
    if (wasSentBefore(answer)) return toCode(visit, address, { type, news: problem })
    return visit.goTo(visit.path, { carry: { typed, [answer.code === 'weak_password' ? 'weak' : 'problem']: problem } })
  },
}

async function showSignUp(visit: Visit) {
  const { config } = visit.deps
  const words = visit.words(signUpWords)
  const isOpen = signsUp(config)
  const providers = config.signup.disabled ? [] : await providerLinks(visit)
  const form = visit.formOf({
    body: [
      addressField(visit),
      field({
        ...{ name: 'password', type: 'password', label: words.password, autocomplete: 'new-password', required: true },
        ...{ hint: fill(words.passwordHint, { length: config.passwords.minLength }), error: visit.carried.weak },
      }),
      button({ label: words.create }),
    ],
  })
  return visit.show({
    title: words.title,
    problem: visit.carried.problem ?? (isOpen || providers.length > 0 ? undefined : closed(visit)),
    body: [
      isOpen && form,
      isOpen && providers.length > 0 && html`<p class="or">${visit.words(signInWords).or}</p>\n`,
      providers,
      html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${words.haveAccount}</a></p>\n`,
    ],
  })
}

const closed = (visit: Visit) => visit.explain({ code: 'signup_disabled', message: '' })
