// Accounts at a provider that are linked to users of a service, as the tests of linking and of its sessions need them.
import { type OpenIdProvider, type ProviderAccount, signInAt } from './openid-provider.ts'
import type { Answer, SignedIn, TestService } from './service.ts'

export type Person = ProviderAccount & { email: string }

let people = 0

/** Returns a new account at a provider, with a verified address. */
export function newPerson(more: Partial<ProviderAccount> = {}): Person {
  const sub = `linked-${people++}`
  return { sub, email: `${sub}@example.com`, email_verified: true, ...more }
}

/** Asks for an address that links. */
export const askToLink = (service: TestService, auth: SignedIn['auth']): Promise<Answer> =>
  service.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)

/** Links an account at the provider, by the browser's whole way. */
export async function link(
  service: TestService,
  google: OpenIdProvider,
  auth: SignedIn['auth'],
  person: Person,
): Promise<Answer> {
  google.next(person)
  return signInAt(service, google, (await askToLink(service, auth)).body.url)
}

export const identityIn = (
  user: { identities: { provider: string; identity_id: string }[] },
  provider: string,
): string => user.identities.find((identity) => identity.provider === provider)?.identity_id as string
