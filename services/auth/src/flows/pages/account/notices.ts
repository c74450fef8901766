// /ui/account/notices: the language of pages and mails, which is `locale` of the user's metadata, and the notices that
// the service sends about the account.
import { html } from '@services/common/html'
import { button, select } from '@services/common/pages/forms'
import { pickLocale } from '@services/common/pages/locale'
import { WORDS } from '../../../adapters/mail/built-in/words.ts'
import { shownEmail } from '../../../adapters/mail/email-address.ts'
import { possibleNotices } from '../../../config/review.ts'
import type { Config } from '../../../config.ts'
import { getsNotices } from '../../../core/outbox/notify.ts'
import { provenUser } from '../../../core/users/proven-addresses.ts'
import type { User } from '../../../core/users/users.store.ts'
import { fill } from '../../../words/language.ts'
import { noticeWords } from '../../../words/pages/account/notices.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { accountPage, done, type Own, refused, showAccount } from './account-page.ts'

export const noticesPage = accountPage({
  name: 'notices',
  get: (own) => showNotices(own),
  async post(own) {
    const { visit, caller } = own
    const { config } = visit.deps
    const locale = languagesOf(config).find((each) => each === visit.form.locale) ?? ''
    // A stored tag may say more than the list, such as `de-AT`: only another choice replaces it.
    if (locale !== chosenLanguage(config, caller.user)) {
      const answer = await own.api('PUT', '/user', { data: { locale: locale || null } })
      if (!answer.ok) return refused(own, answer, (problem) => showNotices(own, problem))
    }
    return done(own, 'saved')
  },
})

function showNotices(own: Own, error?: string) {
  const { visit, caller } = own
  const { config } = visit.deps
  const words = visit.words(noticeWords)
  const languages = languagesOf(config).map((tag) => ({ value: tag, label: languageName(tag), lang: tag }))
  return showAccount(own, {
    title: visit.words(accountWords).notices,
    // Page after a change: in the new language.
    news: visit.carried.news && visit.words(accountWords).saved,
    body: [
      visit.formOf({
        body: [
          select({
            ...{ name: 'locale', label: words.language, hint: words.hint, error },
            value: visit.form.locale ?? chosenLanguage(config, caller.user),
            options: [{ value: '', label: words.browser }, ...languages],
          }),
          button({ label: visit.words(accountWords).save }),
        ],
      }),
      html`<h2>${words.heading}</h2>\n`,
      noticesTo(own),
    ],
  })
}

function noticesTo({ visit, caller: { user } }: Own) {
  const { config } = visit.deps
  const words = visit.words(noticeWords)
  const { email } = provenUser(user)
  // Notice of a changed address: sent in any case, but for one that a setting has assumed.
  const always = config.mail.autoconfirm ? undefined : 'email_changed_notification'
  const kinds = possibleNotices(config).filter((kind) => config.mail.notifications[kind] || kind === always)
  if (!getsNotices(visit.deps, email) || kinds.length === 0) return html`<p>${words.none}</p>\n`
  const { mails } = visit.words(WORDS)
  return html`<p>${fill(words.sent, { email: shownEmail(email) })}</p>
<ul>
${kinds.map((kind) => html`<li>${mails[kind].subject}</li>\n`)}</ul>
<p>${words.fixed}</p>
`
}

/** Languages of mails and of pages; each falls back where it lacks one. */
const languagesOf = ({ mail, pages }: Config): string[] => [...new Set([...mail.locales, ...pages.languages])]

/** Returns the language that the user's metadata choose, or `''` where the browser decides. */
export const chosenLanguage = (config: Config, { user_metadata: metadata }: Pick<User, 'user_metadata'>): string =>
  pickLocale({ locales: languagesOf(config), defaultLocale: '' }, { metadata })

/** Returns the name of a language in itself, or the tag of one that is unknown. */
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames(tag, { type: 'language' }).of(tag) ?? tag
  } catch {
    // A setting may hold a tag whose parts are in no valid order.
    return tag
  }
}
