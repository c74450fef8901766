// /ui/account/export: all that is stored about the user, as a file.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { leaveWords } from '../../../words/pages/account/leave.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { accountPage, type Own, refused, showAccount } from './account-page.ts'

export const exportPage = accountPage({
  name: 'export',
  get: (own) => showExport(own),
  async post(own) {
    const { refusal } = await own.visit.download('/user/export', own.caller)
    return refusal ? refused(own, refusal, (problem) => showExport(own, problem)) : own.visit.reply
  },
})

function showExport(own: Own, problem?: string) {
  const { visit } = own
  const words = visit.words(leaveWords)
  return showAccount(own, {
    ...{ title: visit.words(accountWords).export, problem },
    body: [html`<p>${words.exportText}</p>\n`, visit.formOf({ body: button({ label: words.download }) })],
  })
}
