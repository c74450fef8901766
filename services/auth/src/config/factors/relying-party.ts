// The relying party of passkeys and security keys: the domain that keys are bound to, and the pages that may use them.
import { isIP } from 'node:net'

/** Origin of an Android app: SHA-256 of its signing certificate. */
const ANDROID_APP = /^android:apk-key-hash:[\w-]{43}$/

interface RelyingParty {
  WEBAUTHN_RP_ID: string | undefined
  WEBAUTHN_RP_ORIGINS: readonly string[]
}

/** Parses the domain. Throws for an address, to which browsers bind no key. */
export function parseRpId(value: string): string {
  const domain = value.trim().toLowerCase()
  const isName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(domain)
  const host = isName ? URL.parse(`https://${domain}`)?.hostname : undefined
  if (host !== domain || isIP(host)) throw new Error('must be a domain name without scheme and port')
  return domain
}

/** Lists the problems of a domain and its origins. Half of the pair would leave the other half to the application. */
export function relyingPartyProblems({ WEBAUTHN_RP_ID: rpId = '', WEBAUTHN_RP_ORIGINS: origins }: RelyingParty) {
  if ((rpId === '') !== (origins.length === 0)) {
    return ['AUTH_WEBAUTHN_RP_ID and AUTH_WEBAUTHN_RP_ORIGINS must be set together']
  }
  const pages = pagesIn(origins)
  if (!pages.every(({ origin, url }) => url?.origin === origin)) {
    return ['AUTH_WEBAUTHN_RP_ORIGINS must be origins such as https://app.example, without a path']
  }
  const hosts = pages.map(({ url }) => url as URL)
  const rules: [isMet: boolean, problem: string][] = [
    [
      hosts.every(({ protocol, hostname }) => protocol === 'https:' || isLocal(hostname)),
      'AUTH_WEBAUTHN_RP_ORIGINS must be https, except on localhost: browsers use no keys without it',
    ],
    [
      hosts.every(({ hostname }) => !isIP(hostname.replace(/^\[|\]$/g, ''))),
      'AUTH_WEBAUTHN_RP_ORIGINS must have names: browsers use no keys at an address',
    ],
    [
      hosts.every(({ hostname }) => isWithin(hostname, rpId) || !isLocal(hostname)),
      'AUTH_WEBAUTHN_RP_ORIGINS has localhost, which can use no keys of AUTH_WEBAUTHN_RP_ID',
    ],
    [
      rpId.includes('.') || hosts.every(({ hostname }) => hostname === rpId || !isWithin(hostname, rpId)),
      'AUTH_WEBAUTHN_RP_ID is a top-level domain: browsers bind keys to example.com, not to com',
    ],
  ]
  return rules.filter(([isMet]) => !isMet).map(([, problem]) => problem)
}

/** Warns of pages of other domains: browsers use keys there only if the domain itself permits it (WebAuthn 5.11). */
export function relyingPartyWarnings({ WEBAUTHN_RP_ID: rpId, WEBAUTHN_RP_ORIGINS: origins }: RelyingParty): string[] {
  const foreign = pagesIn(origins).filter(({ url }) => rpId && url && !isWithin(url.hostname, rpId))
  return foreign.length > 0
    ? [
        `AUTH_WEBAUTHN_RP_ORIGINS has ${foreign.length} page(s) outside AUTH_WEBAUTHN_RP_ID: browsers use keys there only if /.well-known/webauthn of that domain lists them`,
      ]
    : []
}

const pagesIn = (origins: readonly string[]) =>
  origins.filter((origin) => !ANDROID_APP.test(origin)).map((origin) => ({ origin, url: URL.parse(origin) }))

const isWithin = (hostname: string, domain: string) => hostname === domain || hostname.endsWith(`.${domain}`)

const isLocal = (hostname: string) => isWithin(hostname, 'localhost')
