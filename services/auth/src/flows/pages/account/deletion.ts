// /ui/account/deletion: deletes the account (AUTH_SELF_DELETION_ENABLED).
import { html } from '@services/common/html'
import { button, checkbox } from '@services/common/pages/forms'
import { framesOf } from '../../../core/oauth-server/logout/sign-out-applications.ts'
import { leaveWords } from '../../../words/pages/account/leave.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { leaveSignedOut } from '../signed-out.ts'
import { accountPage, type Own, refused, showAccount } from './account-page.ts'
import { currentPassword, ownName } from './password.ts'

export const deletionPage = accountPage({
  name: 'deletion',
  isEnabled: ({ signup }) => signup.selfDeletion,
  get: (own) => showDeletion(own),
  async post(own) {
    const { visit } = own
    const words = visit.words(leaveWords)
    if (visit.form.sure !== 'yes') return showDeletion(own, words.notSure)
    const { current_password } = visit.form
    const frames = await framesOf(visit.deps, own.caller)
    const deleted = await own.api('DELETE', '/user', current_password ? { current_password } : {})
    if (!deleted.ok && deleted.code !== 'user_not_found')
      return refused(own, deleted, (problem) => showDeletion(own, problem))
    visit.signedOut()
    return leaveSignedOut(visit, { frames, news: 'deleted' })
  },
})

function showDeletion(own: Own, problem?: string) {
  const { visit, caller } = own
  const words = visit.words(leaveWords)
  return showAccount(own, {
    ...{ title: visit.words(accountWords).deletion, problem },
    body: [
      html`<p>${words.deletionText}</p>\n`,
      visit.formOf({
        body: [
          caller.user.has_password && [ownName(own), currentPassword(own)],
          checkbox({ name: 'sure', label: words.sure }),
          button({ label: words.delete, kind: 'danger' }),
        ],
      }),
    ],
  })
}
