import { shownEmail } from '../../adapters/mail/email-address.ts'
import { provenUser } from '../../core/users/proven-addresses.ts'
import { findUserById } from '../../core/users/users.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { buttonPage } from '../../http/pages/button-page.ts'
import { pageWords } from '../../http/pages/page-words.ts'
import type { ShownPage } from '../../http/pages/show-page.ts'
import { fill } from '../../words/language.ts'

interface LinkingRequest {
  provider: string
  userId: string
  fields: { begin: string; page: string }
  acceptLanguage: string | undefined
}

/**
 * Renders the page before linking: a stranger may have sent its URL, because no cookie identifies the script that
 * requested it. Nothing is linked until the user has seen which account gets the identity.
 */
export async function linkingPage(
  deps: Deps,
  { provider, userId, fields, acceptLanguage }: LinkingRequest,
): Promise<ShownPage> {
  const found = await findUserById(deps.db, userId)
  if (!found) throw apiError('user_not_found', { status: 422, message: 'Linking target user not found' })
  const { language, words, site } = pageWords(deps.config, acceptLanguage)
  const { linking } = words
  const { email, phone } = provenUser(found)
  const address = email ? shownEmail(email) : phone
  const account = address ? linking.account.replace('{address}', () => address) : linking.guest
  return buttonPage({
    language,
    heading: linking.heading,
    text: fill(linking.text, { provider, account, site }),
    button: linking.button,
    action: '?',
    fields,
  })
}
