// /ui/account/name: the name, which is `full_name` of the user's metadata.
import { button, field } from '@services/common/pages/forms'
import type { Metadata } from '../../../db/tables.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { accountPage, done, type Own, refused, showAccount } from './account-page.ts'

export const namePage = accountPage({
  name: 'name',
  get: (own) => showName(own),
  async post(own) {
    const name = own.visit.form.name?.trim() || null
    const answer = await own.api('PUT', '/user', { data: { full_name: name } })
    if (answer.ok) return done(own, own.visit.words(accountWords).saved)
    return refused(own, answer, (problem) => showName(own, problem))
  },
})

function showName(own: Own, error?: string) {
  const { visit, caller } = own
  const words = visit.words(accountWords)
  const value = visit.form.name ?? nameIn(caller.user.user_metadata)
  return showAccount(own, {
    title: words.name,
    body: visit.formOf({
      body: [
        field({ name: 'name', label: words.name, value, error, autocomplete: 'name', maxlength: 200 }),
        button({ label: words.save }),
      ],
    }),
  })
}

/** Name of a person; providers report either member. */
export const nameIn = ({ full_name: full, name }: Metadata): string =>
  [full, name].find((each): each is string => typeof each === 'string' && each !== '') ?? ''
