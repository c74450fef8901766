// /ui/sign-in: the address first, then a way to prove it. The page is the same for known and unknown addresses.
import { type Html, html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { shownEmail } from '../../adapters/mail/email-address.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { provenUser } from '../../core/users/proven-addresses.ts'
import type { User } from '../../core/users/users.store.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { applicationName } from '../../http/pages/send-to.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { signInWords } from '../../words/pages/sign-in.ts'
import { type TypedAddress, textOf, typedAddress } from './address.ts'
import { PASSKEY_SCRIPT, passkeySignIn } from './passkey.ts'
import { sendCode } from './send-code.ts'
import { offeredProviders, offers, signsUp } from './ways.ts'

export const signInPage: Page = {
  path: '/ui/sign-in',
  async get(visit) {
    const caller = visit.flow.prompt === 'login' ? undefined : await visit.caller()
    if (!caller) {
      const address = typedAddress(visit, visit.carried.address)
      return address ? showPassword(visit, address) : showAddress(visit)
    }
    return visit.flow.next === undefined ? showUser(visit, caller.user) : visit.continueAs(caller)
  },
  async post(visit) {
    if (visit.form.way === 'continue') {
      const caller = await visit.caller()
      return caller ? visit.continueAs(caller) : showAddress(visit)
    }
    const { address: typed = '', way } = visit.form
    const address = typedAddress(visit, typed)
    if (!address) return visit.retry({ typed, error: visit.words(signInWords).notAnAddress })
    if (way === 'password') return signInWithPassword(visit, address)
    if (way === 'code' || !offers(visit.deps.config, 'password')) return sendCode(visit, address)
    return visit.goTo('/ui/sign-in', { carry: { address: typed } })
  },
}

/** The user who is signed in here goes on with one press, or is another one. */
function showUser(visit: Visit, user: User) {
  const words = visit.words(signInWords)
  const name = nameOf(user)
  const application = applicationName(visit.deps.config, visit.target())
  return visit.show({
    title: words.title,
    body: [
      html`<p>${name === undefined ? words.asGuest : fill(words.asUser, { name })}</p>\n`,
      visit.formOf({
        fields: { way: 'continue' },
        body: button({ label: fill(visit.words(frameWords).goOn, { name: application }) }),
      }),
      html`<p class="links"><a href="${visit.link('/ui/sign-in', { prompt: 'login' })}">${words.anotherUser}</a>
<a href="${visit.link('/ui/sign-out')}">${words.signOut}</a></p>
`,
    ],
  })
}

/** The first step. */
async function showAddress(visit: Visit) {
  const { config } = visit.deps
  const words = visit.words(signInWords)
  const asksAddress = ['password', 'code', 'link'].some((way) => offers(config, way as 'password' | 'code' | 'link'))
  const form = visit.formOf({
    body: [addressField(visit), button({ label: words.goOn })],
  })
  const takesPasskey = offers(config, 'passkey')
  const providers = await providerLinks(visit)
  const isEmpty = !asksAddress && !takesPasskey && providers.length === 0
  return visit.show({
    title: words.title,
    news: { 'signed-out': words.signedOut, deleted: words.deleted }[visit.carried.news ?? ''],
    ...((isEmpty || visit.carried.problem) && { problem: isEmpty ? words.noWay : visit.carried.problem }),
    body: [
      asksAddress && form,
      asksAddress && providers.length > 0 && html`<p class="or">${words.or}</p>\n`,
      takesPasskey && passkeySignIn(visit),
      providers,
      signsUp(config) && html`<p class="links"><a href="${visit.link('/ui/sign-up')}">${words.register}</a></p>\n`,
    ],
    scripts: takesPasskey ? [PASSKEY_SCRIPT] : [],
  })
}

/** Field for the address of an account, with the text typed before and the reason why it was refused. */
export function addressField(visit: Visit): Html {
  const words = visit.words(signInWords)
  const { phone } = visit.deps.config.signup
  const { typed: value, error } = visit.carried
  return field({
    ...{ name: 'address', value, error, required: true, autofocus: true, maxlength: 320 },
    ...{ label: phone ? words.emailOrPhone : words.email, autocomplete: 'username' },
    ...(phone ? { inputmode: 'email' as const } : { type: 'email' as const }),
  })
}

/** Links, not forms: a browser refuses a form that ends at another host. */
export async function providerLinks(visit: Visit): Promise<Html[]> {
  const words = visit.words(signInWords)
  const providers = await offeredProviders(visit.deps)
  return providers.map(
    ({ name, label }) =>
      html`<a class="button" href="${visit.link('/ui/provider', { provider: name })}">${fill(words.with, { name: label })}</a>\n`,
  )
}

function showPassword(visit: Visit, address: TypedAddress) {
  const words = visit.words(signInWords)
  const typed = textOf(address)
  const mailsCodes = offers(visit.deps.config, 'code') || offers(visit.deps.config, 'link')
  return visit.show({
    title: words.title,
    ...(visit.carried.problem && { problem: visit.carried.problem }),
    body: [
      visit.formOf({
        fields: { way: 'password' },
        body: [
          field({ name: 'address', label: words.email, value: typed, readonly: true, autocomplete: 'username' }),
          field({
            ...{ name: 'password', type: 'password', label: words.password, autocomplete: 'current-password' },
            ...{ required: true, autofocus: true },
          }),
          button({ label: words.signIn }),
        ],
      }),
      mailsCodes &&
        visit.formOf({
          fields: { way: 'code', address: typed },
          body: button({ label: words.sendCode, kind: 'quiet' }),
        }),
      visit.formOf({
        ...{ action: '/ui/recover', fields: { way: 'ask', address: typed } },
        body: button({ label: words.forgotten, kind: 'quiet' }),
      }),
      html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${words.another}</a></p>\n`,
    ],
  })
}

async function signInWithPassword(visit: Visit, address: TypedAddress) {
  const { password = '' } = visit.form
  const answer = await visit.api<SessionBody>('POST', '/token?grant_type=password', { ...address, password })
  if (answer.ok) return visit.signedIn(answer.body)
  return visit.retry({ address: textOf(address), problem: visit.explain(answer) })
}

/** Name of a user for themselves: a proven address, if there is one. */
export function nameOf(user: User): string | undefined {
  const { email, phone } = provenUser(user)
  return email ? shownEmail(email) : (phone ?? undefined)
}
