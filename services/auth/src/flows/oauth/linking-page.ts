import { ENGLISH } from '../../adapters/mail/built-in/words.en.ts'
import { WORDS } from '../../adapters/mail/built-in/words.ts'
import { pickLocale } from '../../adapters/mail/locale.ts'
import { provenUser } from '../../core/users/proven-addresses.ts'
import { findUserById } from '../../core/users/users.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { buttonPage } from '../../http/button-page.ts'

interface LinkingRequest {
  provider: string
  userId: string
  fields: { begin: string; page: string }
  acceptLanguage: string | undefined
}

/**
 * Renders the page that is shown before an account at a provider is linked. No cookie identifies the script that
 * requested the URL, so a stranger may have sent it. Nothing is linked until the user has seen which account gets the
 * identity.
 */
export async function linkingPage(deps: Deps, request: LinkingRequest): Promise<string> {
  const { provider, userId, fields, acceptLanguage } = request
  const found = await findUserById(deps.db, userId)
  if (!found) throw apiError('user_not_found', { status: 422, message: 'Linking target user not found' })
  const { mail, siteUrl } = deps.config
  const locale = pickLocale(mail, { acceptLanguage })
  const language = Object.hasOwn(WORDS, locale) ? locale : 'en'
  const { linking: words } = WORDS[language] ?? ENGLISH
  const { email, phone } = provenUser(found)
  const address = email ?? phone
  const account = address ? words.account.replace('{address}', () => address) : words.guest
  const values: Record<string, string> = { provider, account, site: new URL(siteUrl).host || siteUrl }
  return buttonPage({
    language,
    heading: words.heading,
    // One pass: an address may hold braces.
    text: words.text.replaceAll(/\{(\w+)\}/g, (hole, name: string) => values[name] ?? hole),
    button: words.button,
    action: '?',
    fields,
  })
}
