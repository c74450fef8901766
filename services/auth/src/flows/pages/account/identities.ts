// /ui/account/identities: accounts at providers that sign the user in. Linking leads to the page before it
// (../../oauth/linking-page.ts), to the provider and, by /ui/arrive, back here.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { table } from '@services/common/pages/table'
import type { UserBody } from '../../../core/users/user-shape.ts'
import { fill } from '../../../words/language.ts'
import { identityWords } from '../../../words/pages/account/identities.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { arrivalOf } from '../send-code.ts'
import { offeredProviders } from '../ways.ts'
import { accountPage, done, type Own, refused, rowButton, showAccount, shownTime, unavailable } from './account-page.ts'

export const identitiesPage = accountPage({
  name: 'identities',
  isEnabled: ({ external }) => external.manualLinking,
  get: (own) => showIdentities(own),
  async post(own) {
    const { visit } = own
    const { identity_id: id, provider } = visit.form
    const again = (problem: string) => showIdentities(own, problem)
    if (provider !== undefined) {
      const { query, challenge } = arrivalOf(visit)
      const search = new URLSearchParams({ ...challenge, provider, skip_http_redirect: 'true' })
      const url = `/user/identities/authorize${query === '' ? '?' : `${query}&`}${search}`
      const begun = await own.api<{ url: string }>('GET', url)
      return begun.ok ? visit.leave(begun.body.url) : refused(own, begun, again)
    }
    const unlinked = await own.api('DELETE', `/user/identities/${encodeURIComponent(id ?? '')}`, {})
    if (unlinked.ok) return done(own, visit.words(identityWords).unlinked)
    // Perhaps done already, by the first press of two or in another tab.
    const user = await own.api<UserBody>('GET', '/user')
    const isOver = user.ok && user.body.identities.every(({ identity_id }) => identity_id !== id)
    return isOver ? done(own, visit.words(identityWords).unlinked) : refused(own, unlinked, again)
  },
})

/** Addresses are identities too, which have a page of their own. */
const ADDRESSES = ['email', 'phone']

async function showIdentities(own: Own, problem?: string) {
  const { visit } = own
  const answer = await own.api<UserBody>('GET', '/user')
  const words = { ...visit.words(accountWords), ...visit.words(identityWords) }
  if (!answer.ok) return unavailable(own, words.identities, answer)
  const identities = answer.body.identities.filter(({ provider }) => !ADDRESSES.includes(provider))
  const providers = await offeredProviders(visit.deps)
  const labelOf = (name: string) => providers.find((provider) => provider.name === name)?.label ?? name
  return showAccount(own, {
    ...{ title: words.identities, problem, isWide: true },
    body: [
      table({
        ...{ caption: words.identities, empty: words.empty },
        columns: [words.provider, words.address, words.lastUsed, words.actions],
        rows: identities.map(({ identity_id, provider, email, id, last_sign_in_at }) => [
          labelOf(provider),
          email ?? id,
          shownTime(visit, last_sign_in_at),
          visit.formOf({ fields: { identity_id }, body: rowButton(words.unlink, labelOf(provider)) }),
        ]),
      }),
      providers.length > 0 && html`<h2>${words.link}</h2>\n`,
      providers.map(({ name, label }) =>
        visit.formOf({
          fields: { provider: name, next: visit.path },
          body: button({ label: fill(words.with, { name: label }), kind: 'quiet' }),
        }),
      ),
    ],
  })
}
