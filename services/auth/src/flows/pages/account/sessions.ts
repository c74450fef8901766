// /ui/account/sessions: where the user is signed in, by device and place, and the end of one or of all others.

import { clientName } from '@services/common/pages/client-name'
import { button } from '@services/common/pages/forms'
import { table } from '@services/common/pages/table'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { sessionWords } from '../../../words/pages/account/sessions.ts'
import { accountPage, done, type Own, refused, rowButton, showAccount, shownTime, unavailable } from './account-page.ts'
import { shownClient } from './shown-application.ts'

interface Session {
  id: string
  created_at: string
  refreshed_at: string
  user_agent: string | null
  ip: string | null
  current: boolean
  /** Application of the session; absent for the user's own. */
  client?: { id: string; name?: string }
}

export const sessionsPage = accountPage({
  name: 'sessions',
  get: (own) => showSessions(own),
  async post(own) {
    const { form } = own.visit
    const words = own.visit.words(sessionWords)
    const isOne = form.session_id !== undefined
    const ended = isOne
      ? await own.api('DELETE', `/user/sessions/${encodeURIComponent(form.session_id ?? '')}`)
      : await own.api('POST', '/logout?scope=others')
    const news = isOne ? words.ended : words.othersEnded
    return ended.ok ? done(own, news) : refused(own, ended, (problem) => showSessions(own, problem), news)
  },
})

async function showSessions(own: Own, problem?: string) {
  const { visit } = own
  const answer = await own.api<Session[]>('GET', '/user/sessions')
  if (!answer.ok) return unavailable(own, visit.words(accountWords).sessions, answer)
  const sessions = answer.body
  const words = visit.words(sessionWords)
  return showAccount(own, {
    ...{ title: visit.words(accountWords).sessions, problem, isWide: true },
    body: [
      table({
        ...{ caption: visit.words(accountWords).sessions, empty: words.none },
        columns: [words.device, words.place, words.begun, words.used, words.actions],
        rows: sessions.map(({ id, client, user_agent, ip, created_at, refreshed_at, current }) => {
          const name = client ? shownClient(client) : (clientName(user_agent) ?? words.unknown)
          const fields = { session_id: id }
          return [
            name,
            ip ?? words.unknown,
            shownTime(visit, created_at),
            shownTime(visit, refreshed_at),
            current ? words.current : visit.formOf({ fields, body: rowButton(words.end, `${name} ${ip ?? ''}`) }),
          ]
        }),
      }),
      sessions.length > 1 && visit.formOf({ body: button({ label: words.endOthers, kind: 'danger' }) }),
    ],
  })
}
