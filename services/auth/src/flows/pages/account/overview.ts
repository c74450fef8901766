// /ui/account: the present state, and the way to the pages that change it.
import { type HtmlValue, html } from '@services/common/html'
import { shownEmail } from '../../../adapters/mail/email-address.ts'
import { hasVerifiedFactor } from '../../../core/factors/assurance.ts'
import { provenUser } from '../../../core/users/proven-addresses.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { ACCOUNT, accountPage } from './account-page.ts'
import { nameIn } from './name.ts'
import { chosenLanguage, languageName } from './notices.ts'

export const overviewPage = accountPage({
  name: '',
  get({ visit, caller }) {
    const words = visit.words(accountWords)
    const { external, mfa, oauthServer, passkeys, signup } = visit.deps.config
    const user = provenUser(caller.user)
    const { is_anonymous: isGuest } = user
    const addresses = [user.email && shownEmail(user.email), user.phone && `+${user.phone}`].filter(Boolean).join(', ')
    const language = chosenLanguage(visit.deps.config, user)
    const rows: [page: string, label: string, state?: string][] = [
      ['name', words.name, nameIn(user.user_metadata)],
      ['addresses', words.addresses, addresses || words.none],
      ['password', words.password, caller.user.has_password ? words.set : words.notSet],
      ...(passkeys.enabled && !isGuest ? [['passkeys', words.passkeys] as [string, string]] : []),
      ...(isGuest
        ? []
        : [['factors', words.factors, hasVerifiedFactor(user) ? words.on : words.off] as [string, string, string]]),
      ['sessions', words.sessions],
      ...(mfa.trustedDevices.ttlSeconds > 0 ? [['devices', words.devices] as [string, string]] : []),
      ...(external.manualLinking ? [['identities', words.identities] as [string, string]] : []),
      ...(oauthServer.enabled ? [['applications', words.applications] as [string, string]] : []),
      ['notices', words.notices, language && languageName(language)],
      ['export', words.export],
      ...(signup.selfDeletion ? [['deletion', words.deletion] as [string, string]] : []),
    ]
    const row = ([page, label, state]: (typeof rows)[number]): HtmlValue =>
      html`<li class="row"><a href="${visit.link(`${ACCOUNT}/${page}`)}">${label}</a>${state && html`<span>${state}</span>`}</li>\n`
    return visit.show({
      title: words.title,
      news: visit.carried.news,
      body: [
        html`<nav aria-label="${words.settings}"><ul class="rows">
${rows.map(row)}</ul></nav>
<p class="links">${!visit.staysHere() && html`<a href="${visit.target()}">${words.toApplication}</a> `}<a href="${visit.link('/ui/sign-out')}">${words.signOut}</a></p>
`,
      ],
    })
  },
})
