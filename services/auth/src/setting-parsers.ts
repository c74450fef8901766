// How the texts of settings become values, where the types of common's config.ts do not say it all. Each throws an Error whose
// words complete "AUTH_X …" and never quote the value.
import { isLocale } from './mail/locale.ts'

/** Prefix of all table names; written into SQL as it is. */
export function parseNamespace(value: string): string {
  if (!/^([a-z][a-z0-9_]{0,30})?$/.test(value)) {
    throw new Error('must be up to 31 lower-case letters, digits and underscores, starting with a letter')
  }
  return value
}

/** Host names in lower case. */
export function parseHosts(value: string): string[] {
  const hosts = value
    .split(',')
    .map((host) => host.trim().toLowerCase())
    .filter(Boolean)
  if (!hosts.every((host) => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host))) {
    throw new Error('must be a list of host names without scheme, port and path')
  }
  return hosts
}

/** A language tag in lower case. */
export function parseLocale(value: string): string {
  const locale = value.trim().toLowerCase()
  if (!isLocale(locale)) throw new Error('must be a language tag such as en or pt-br')
  return locale
}

/** Language tags separated by commas. */
export function parseLocales(value: string): string[] {
  const locales = value.split(',').filter((part) => part.trim() !== '')
  if (locales.length > 100) throw new Error('must not have more than 100 languages')
  return locales.map(parseLocale)
}

/** Ours, or such as would change where a mail goes or how it is read. */
const RESERVED_HEADERS =
  /^(from|to|cc|bcc|sender|subject|date|message-id|mime-version|content-.*|received|return-path|auto-submitted|dkim-signature)$/i

/** Names with one text each or several; the texts are ASCII or will be encoded, on one line. */
export function parseMailHeaders(value: string): Record<string, string[]> {
  const refuse = () => {
    throw new Error(
      'must be a JSON object of header names with texts or lists of texts, none of which the service sets',
    )
  }
  let headers: unknown
  try {
    headers = JSON.parse(value)
  } catch {
    refuse()
  }
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) refuse()
  const entries = Object.entries(headers as object).map(([name, texts]) => [name, [texts].flat()] as const)
  for (const [name, texts] of entries) {
    const isFit = /^[A-Za-z0-9-]{1,76}$/.test(name) && !RESERVED_HEADERS.test(name)
    if (!isFit || !texts.every((text) => typeof text === 'string' && !/[\r\n\0]/.test(text))) refuse()
  }
  return Object.fromEntries(entries) as Record<string, string[]>
}

/** A key of HMACs. */
export function parseSecret(value: string): string {
  // RFC 7518 section 3.2 asks for 32 bytes; shorter secrets exist in the field, a dictionary word must not pass.
  if (Buffer.byteLength(value) < 16) throw new Error('must be at least 16 bytes long')
  return value
}
