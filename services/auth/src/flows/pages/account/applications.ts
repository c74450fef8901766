// /ui/account/applications: applications that the user agreed to, their scopes, and their removal.
import { html } from '@services/common/html'
import { table } from '@services/common/pages/table'
import { applicationWords } from '../../../words/pages/account/applications.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { accountPage, done, type Own, refused, rowButton, showAccount, shownTime, unavailable } from './account-page.ts'
import { scopeList, shownClient } from './shown-application.ts'

interface Grant {
  client: { id: string; name?: string }
  scopes: string[]
  granted_at: string
}

const URL = '/user/oauth/grants'

export const applicationsPage = accountPage({
  name: 'applications',
  isEnabled: ({ oauthServer }) => oauthServer.enabled,
  get: (own) => showApplications(own),
  async post(own) {
    const { client_id: id = '' } = own.visit.form
    const revoked = await own.api('DELETE', `${URL}?client_id=${encodeURIComponent(id)}`)
    const news = own.visit.words(accountWords).removed
    return revoked.ok ? done(own, news) : refused(own, revoked, (problem) => showApplications(own, problem), news)
  },
})

async function showApplications(own: Own, problem?: string) {
  const { visit } = own
  const answer = await own.api<Grant[]>('GET', URL)
  const words = { ...visit.words(accountWords), ...visit.words(applicationWords) }
  if (!answer.ok) return unavailable(own, words.applications, answer)
  const rows = answer.body.map(async ({ client, scopes, granted_at }) => {
    const name = shownClient(client)
    const remove = visit.formOf({ fields: { client_id: client.id }, body: rowButton(words.remove, name) })
    return [name, await scopeList(visit, scopes), shownTime(visit, granted_at), remove]
  })
  return showAccount(own, {
    ...{ title: words.applications, problem, isWide: true },
    body: [
      html`<p class="hint">${words.hint}</p>\n`,
      table({
        ...{ caption: words.applications, empty: words.empty },
        columns: [words.application, words.may, words.since, words.actions],
        rows: await Promise.all(rows),
      }),
    ],
  })
}
