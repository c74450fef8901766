import type { WebauthnChallenge } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { isPermitted, type RedirectRules } from '../redirects/allowed-targets.ts'

/** Domain that a security key answers to, and the pages that may ask it. */
export type RelyingParty = Pick<WebauthnChallenge, 'rpId' | 'origins'>

const MAX_ORIGINS = 10

/**
 * Returns the settings' relying party, or the application's, or the site itself. An application may name permitted
 * redirect origins and a domain that contains them: another page could pass a key's answer on to us. Throws
 * validation_failed.
 */
export function relyingPartyOf(
  { rpId, origins }: { rpId: string | undefined; origins: string[] },
  rules: RedirectRules,
  input: unknown,
): RelyingParty {
  if (rpId) return { rpId, origins }
  const { rpId: inputId, rpOrigins: inputOrigins } = (input ?? {}) as { rpId?: unknown; rpOrigins?: unknown }
  const site = new URL(rules.siteUrl)
  if ((inputId ?? inputOrigins ?? null) === null) return { rpId: site.hostname, origins: [site.origin] }
  if (!isTexts(inputOrigins)) throw refused('rpOrigins must be a list of origins')
  if (!inputOrigins.every((origin) => isOrigin(origin) && isAllowed(origin, rules))) {
    throw refused('rpOrigins must be origins of the site or of its permitted redirect targets')
  }
  const domain = typeof inputId === 'string' ? inputId.toLowerCase() : ''
  if (!inputOrigins.every((origin) => isWithin(new URL(origin).hostname, domain))) {
    throw refused('rpId must be the domain of all rpOrigins, or one they are part of')
  }
  return { rpId: domain, origins: inputOrigins }
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MAX_ORIGINS &&
  value.every((item) => typeof item === 'string')

const isOrigin = (text: string) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text

/** Patterns of the allow list often cover whole sites: `https://app.example/**`. */
const isAllowed = (origin: string, rules: RedirectRules) =>
  isPermitted(origin, rules) || isPermitted(`${origin}/`, rules)

const isWithin = (host: string, domain: string) =>
  domain !== '' && (host === domain || (domain.includes('.') && host.endsWith(`.${domain}`)))

const refused = (message: string) => apiError('validation_failed', { message })
