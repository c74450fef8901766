import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import { duration, oneOf, parsed, port, text, type Values, type Variables } from '@services/common/config/variables'
import { jsonObject } from '../adapters/json-object.ts'
import { parseEmail, withAsciiDomain } from '../adapters/mail/email-address.ts'
import { isHookEnabled } from './hooks/hook-variables.ts'
import type { serverVariables } from './server.ts'
import type { signupVariables } from './signup.ts'

export const smtpVariables = {
  SMTP_HOST: parsed(
    'string',
    'Name or address of the mail server; required while e-mail is enabled and no hook sends it.',
    {},
    parseHost,
  ),
  SMTP_PORT: port('Port of the mail server; 465 implies TLS from the start. Required like SMTP_HOST.', {}),
  SMTP_USER: text('User name at the mail server, if it requires one.'),
  SMTP_PASS: text('Password at the mail server.', { secret: true }),
  SMTP_ADMIN_EMAIL: parsed('string', 'From address of all mail; required like SMTP_HOST.', {}, parseSender),
  SMTP_SENDER_NAME: text('From name; SMTP_ADMIN_EMAIL when unset.'),
  SMTP_TLS: oneOf(
    ['auto', 'required', 'off'],
    'TLS to the mail server: `auto` uses it where offered, always when a password leaves this machine; `required` never sends without it; `off` never uses it and excludes port 465.',
    { default: 'auto' },
  ),
  SMTP_CA_FILE: parsed(
    'file',
    'Certificates (PEM) of the authority that issued that of the mail server, instead of the public ones.',
    {},
    readAuthority,
  ),
  SMTP_HEADERS: parsed(
    'JSON',
    'Further headers of all mail: names with a text or a list of texts; `$messageType` becomes the kind of the mail.',
    { default: '{}', secret: true },
    parseMailHeaders,
  ),
  SMTP_MAX_FREQUENCY: duration('Minimum time between confirmation mails to one address.', { default: '900' }),
} satisfies Variables

/** Submission port (RFC 6409), for services that need a mail server only now and then. */
const DEFAULT_PORT = 587
/** Implicit TLS (RFC 8314). */
const SMTPS_PORT = 465

export const smtpSettings = (
  values: Values<typeof smtpVariables & Pick<typeof serverVariables, 'API_EXTERNAL_URL'>>,
) => ({
  host: values.SMTP_HOST,
  port: values.SMTP_PORT ?? DEFAULT_PORT,
  user: values.SMTP_USER,
  password: values.SMTP_PASS,
  from: values.SMTP_ADMIN_EMAIL,
  senderName: values.SMTP_SENDER_NAME ?? values.SMTP_ADMIN_EMAIL,
  clientName: clientNameOf(values.API_EXTERNAL_URL),
  tls: values.SMTP_TLS,
  authority: values.SMTP_CA_FILE,
  headers: values.SMTP_HEADERS,
})

/** Name in EHLO; some servers refuse a container's. Undefined for `localhost` and addresses. */
function clientNameOf(externalUrl: string): string | undefined {
  const { hostname } = new URL(externalUrl)
  return hostname.includes('.') && !/^[\d.]+$/.test(hostname) ? hostname : undefined
}

/** Refuses a URL and a port, which would be looked up as a part of the name. */
function parseHost(value: string): string {
  if (isIP(value) !== 0 || /^[\p{L}\p{N}]([\p{L}\p{N}._-]*[\p{L}\p{N}.])?$/u.test(value)) return value
  throw new Error('must be a host name or address, without scheme, port and blanks; the port is AUTH_SMTP_PORT')
}

/** Reads certificates. A missing file or another one would show only with the first mail. */
function readAuthority(path: string): string {
  // A device may have no end.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new Error('must be a regular file')
  let certificates: string
  try {
    certificates = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  const [first] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(certificates) ?? []
  try {
    new X509Certificate(first ?? '')
    return certificates
  } catch {
    throw new Error('must be a file of certificates in PEM')
  }
}

/** Checks a bare address; a display name belongs in SMTP_SENDER_NAME. */
function parseSender(value: string): string {
  try {
    parseEmail(value)
    return withAsciiDomain(value)
  } catch {
    throw new Error('must be an e-mail address; the name is AUTH_SMTP_SENDER_NAME')
  }
}

export function smtpProblems(
  values: Values<typeof smtpVariables & Pick<typeof signupVariables, 'EXTERNAL_EMAIL_ENABLED'>>,
): string[] {
  // Clear text to a port that waits for a TLS handshake: every mail would time out.
  const contradiction = values.SMTP_TLS === 'off' && values.SMTP_PORT === SMTPS_PORT
  const missing = (['SMTP_HOST', 'SMTP_PORT', 'SMTP_ADMIN_EMAIL'] as const).filter(
    (name) => values.EXTERNAL_EMAIL_ENABLED && !isHookEnabled(values, 'send-email') && values[name] === undefined,
  )
  return [
    ...missing.map((name) => `AUTH_${name} is required while AUTH_EXTERNAL_EMAIL_ENABLED is true`),
    ...(contradiction ? [`AUTH_SMTP_TLS must not be off with AUTH_SMTP_PORT ${SMTPS_PORT}, which expects TLS`] : []),
  ]
}

/** Headers that the service sets, or that would change where a mail goes or how it is read. */
const RESERVED_HEADERS =
  /^(from|to|cc|bcc|sender|subject|date|message-id|mime-version|content-.*|received|return-path|auto-submitted|dkim-signature)$/i

/** Parses header names with one text each or several, on one line; other characters than ASCII will be encoded. */
function parseMailHeaders(value: string): Record<string, string[]> {
  const problem =
    'must be a JSON object of header names with texts or lists of texts, without headers that the service sets'
  const entries = Object.entries(jsonObject(value, problem)).map(([name, texts]) => [name, [texts].flat()] as const)
  for (const [name, texts] of entries) {
    const isFit = /^[A-Za-z0-9-]{1,76}$/.test(name) && !RESERVED_HEADERS.test(name)
    if (!isFit || !texts.every((text) => typeof text === 'string' && !/[\r\n\0]/.test(text))) throw new Error(problem)
  }
  return Object.fromEntries(entries) as Record<string, string[]>
}
