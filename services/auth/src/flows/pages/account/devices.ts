// /ui/account/devices: devices that are trusted in place of the second factor.
import { html } from '@services/common/html'
import { clientName } from '@services/common/pages/client-name'
import { button } from '@services/common/pages/forms'
import { table } from '@services/common/pages/table'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { sessionWords } from '../../../words/pages/account/sessions.ts'
import { accountPage, done, type Own, refused, rowButton, showAccount, shownTime, unavailable } from './account-page.ts'

interface Device {
  id: string
  name: string | null
  last_used_at: string | null
  expires_at: string
  user_agent: string | null
  ip: string | null
}

const URL = '/factors/trusted-devices'

export const devicesPage = accountPage({
  name: 'devices',
  isEnabled: ({ mfa }) => mfa.trustedDevices.ttlSeconds > 0,
  get: (own) => showDevices(own),
  async post(own) {
    const { device_id: id } = own.visit.form
    const removed = await own.api('DELETE', id === undefined ? URL : `${URL}/${encodeURIComponent(id)}`)
    const news = own.visit.words(accountWords).removed
    return removed.ok ? done(own, news) : refused(own, removed, (problem) => showDevices(own, problem), news)
  },
})

async function showDevices(own: Own, problem?: string) {
  const { visit } = own
  const answer = await own.api<Device[]>('GET', URL)
  const words = { ...visit.words(sessionWords), ...visit.words(accountWords) }
  if (!answer.ok) return unavailable(own, words.devices, answer)
  const devices = answer.body
  return showAccount(own, {
    ...{ title: words.devices, problem, isWide: true },
    body: [
      html`<p class="hint">${words.trustedHint}</p>\n`,
      table({
        ...{ caption: words.devices, empty: words.trusted },
        columns: [words.device, words.place, words.used, words.trustedUntil, words.actions],
        rows: devices.map(({ id, name: given, user_agent, ip, last_used_at, expires_at }) => {
          const name = given ?? clientName(user_agent) ?? words.unknown
          return [
            name,
            ip ?? words.unknown,
            shownTime(visit, last_used_at) ?? words.never,
            shownTime(visit, expires_at),
            visit.formOf({ fields: { device_id: id }, body: rowButton(words.remove, name) }),
          ]
        }),
      }),
      devices.length > 1 && visit.formOf({ body: button({ label: words.removeAll, kind: 'danger' }) }),
    ],
  })
}
