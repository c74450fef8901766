// /ui/account/addresses: e-mail address and phone number. A code, or the link of the mail, confirms a new one. Where
// the old address must agree, both get a code.
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { shownEmail } from '../../../adapters/mail/email-address.ts'
import type { SessionBody } from '../../../core/sessions/issue-tokens.ts'
import type { UserBody } from '../../../core/users/user-shape.ts'
import { fill } from '../../../words/language.ts'
import { addressWords } from '../../../words/pages/account/addresses.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { arrivalOf, wasSentBefore } from '../send-code.ts'
import { accountPage, done, type Own, refused, showAccount, unavailable } from './account-page.ts'
import { currentPassword, ownName } from './password.ts'

type Channel = 'email' | 'phone'

export const addressesPage = accountPage({
  name: 'addresses',
  get: (own) => showAddresses(own),
  async post(own) {
    const { way } = own.visit.form
    if (way === 'confirm') return confirm(own)
    return change(own, own.visit.form.channel === 'phone' ? 'phone' : 'email', way === 'remove')
  },
})

async function change(own: Own, channel: Channel, isRemoval: boolean) {
  const { visit } = own
  const { query, challenge } = arrivalOf(visit)
  const typed = visit.form[channel]?.trim() ?? ''
  const { current_password } = visit.form
  const words = visit.words(addressWords)
  if (!isRemoval && typed === '') return showAddresses(own, visit.explain({ code: 'validation_failed', message: '' }))
  const answer = await own.api<UserBody>('PUT', `/user${query}`, {
    ...{ [channel]: isRemoval ? '' : typed, ...(current_password && { current_password }) },
    ...(channel === 'email' && !isRemoval && challenge),
  })
  if (!answer.ok) {
    // Perhaps by the first press of two, which may end after this one.
    if (!wasSentBefore(answer)) return refused(own, answer, (problem) => showAddresses(own, problem))
    return visit.goTo(visit.path, { carry: { problem: visit.explain(answer), wanted: canonical(channel, typed) } })
  }
  if (isRemoval) return done(own, visit.words(accountWords).removed)
  const isPending = channel === 'email' ? answer.body.new_email : answer.body.new_phone
  return done(own, isPending ? words.sent : visit.words(accountWords).saved)
}

/** Address as the API stores it. */
const canonical = (channel: Channel, typed: string): string =>
  channel === 'email' ? typed.toLowerCase() : typed.replaceAll(/\D/g, '')

/** Takes the code of one address. The confirmation begins a session, which renews the one that is there. */
async function confirm(own: Own) {
  const { visit } = own
  const { type, to = '', wanted, code = '' } = visit.form
  const words = visit.words(addressWords)
  const isPhone = type === 'phone_change'
  const address = isPhone ? { phone: to } : { email: to }
  const body = { type: isPhone ? 'phone_change' : 'email_change', ...address, token: code.trim() }
  const answer = await visit.api<SessionBody | { msg: string }>('POST', '/verify', body)
  if (!answer.ok) {
    const user = await own.api<UserBody>('GET', '/user')
    // Confirmed by the first press of two, or in another tab.
    const isOver = user.ok && (isPhone ? user.body.phone : user.body.email) === wanted
    return isOver ? done(own, words.confirmed) : refused(own, answer, (problem) => showAddresses(own, problem))
  }
  if (!('access_token' in answer.body)) return done(own, words.agreed)
  await visit.take(answer.body)
  return done(own, words.confirmed)
}

async function showAddresses(own: Own, problem?: string) {
  const { visit, caller } = own
  const { config } = visit.deps
  const answer = await own.api<UserBody>('GET', '/user')
  if (!answer.ok) return unavailable(own, visit.words(accountWords).addresses, answer)
  const user = answer.body
  const needsPassword = config.passwords.requireCurrent && caller.user.has_password
  const words = visit.words(addressWords)
  const titles = visit.words(accountWords)

  const part = (channel: Channel) => {
    const value = channel === 'email' ? shownEmail(user.email) : user.phone && `+${user.phone}`
    const isOnly = !(user.email && user.phone)
    return [
      html`<h2>${titles[channel]}</h2>\n<p>${value || titles.none}</p>\n`,
      visit.formOf({
        fields: { channel, next: visit.path },
        body: [
          field({
            ...{ name: channel, label: channel === 'email' ? words.newEmail : words.newPhone, required: true },
            ...(channel === 'email' ? { type: 'email', autocomplete: 'email' } : { type: 'tel', autocomplete: 'tel' }),
            value: visit.form.way === undefined ? visit.form[channel] : undefined,
          }),
          needsPassword && [ownName(own), currentPassword(own, `password-${channel}`)],
          button({ label: words.change }),
        ],
      }),
      value &&
        !isOnly &&
        !needsPassword &&
        visit.formOf({
          fields: { way: 'remove', channel },
          body: button({ label: channel === 'email' ? words.removeEmail : words.removePhone, kind: 'danger' }),
        }),
    ]
  }

  /** Codes that a pending change waits for. */
  const agrees = config.mail.secureEmailChange && user.email !== '' ? [user.email] : []
  const pending = [
    ...(user.new_email === undefined ? [] : [user.new_email, ...agrees]).map((to) => ({
      ...{ type: 'email_change', to, wanted: user.new_email },
    })),
    ...(user.new_phone === undefined ? [] : [{ type: 'phone_change', to: user.new_phone, wanted: user.new_phone }]),
  ]
  const { problem: refusal, wanted = '' } = visit.carried
  const isSent = pending.some(({ to }) => to === wanted)
  return showAccount(own, {
    title: titles.addresses,
    ...(isSent ? { news: words.sent } : { problem: problem ?? refusal }),
    body: [
      pending.map(({ type, to, wanted }, index) =>
        visit.formOf({
          fields: { way: 'confirm', type, to, wanted },
          body: [
            field({
              ...{ name: 'code', label: fill(words.code, { to: type === 'email_change' ? shownEmail(to) : `+${to}` }) },
              ...{ autocomplete: 'one-time-code', inputmode: 'numeric', required: true, id: `code-${index}` },
            }),
            button({ label: words.confirm }),
          ],
        }),
      ),
      part('email'),
      (config.signup.phone || user.phone) && part('phone'),
    ],
  })
}
