import { SpanKind } from '@opentelemetry/api'
import { traced } from '@services/common/tracing'
import type { Transporter } from 'nodemailer'
import { SMTPS_PORT } from '../../config/smtp.ts'
import { openPretendedConnection } from './pretended-mail-server.ts'
import { toFailure } from './smtp-failure.ts'

export interface SmtpSettings {
  host: string | undefined
  port: number
  user: string | undefined
  password: string | undefined
  from: string | undefined
  senderName: string | undefined
  /** How we name ourselves to the server; undefined: as this machine is called. */
  clientName: string | undefined
  /** `auto`: where the server offers it; `required`: never without; `off`: never. */
  tls: 'auto' | 'required' | 'off'
  /** Further headers; `$messageType` in a value is the kind of the mail. */
  headers: Readonly<Record<string, readonly string[]>>
}

/** Configuration demands one only while e-mail is a way to sign in. */
export const hasMailServer = ({ host, from }: Pick<SmtpSettings, 'host' | 'from'>): boolean =>
  host !== undefined && from !== undefined

export interface Message {
  /** Stable over retries, so that a mail sent twice after a crash can be recognised. */
  id: string
  kind: string
  to: string
  subject: string
  html: string
  text: string
  /** The same is done for it, and it does not leave. */
  isPretended?: boolean
}

export interface Mailer {
  /** Throws what `explain` makes of the failure: by default a TemporaryFailure or PermanentFailure fit for the log. */
  send(message: Message): Promise<{ messageId: string }>
  close(): void
}

/**
 * A few kept connections; every wait is bounded, a hanging server costs a worker at most 30 s. nodemailer is loaded with
 * the first mail: it is 6 MiB that an idle service does not need.
 */
export function createMailer(settings: SmtpSettings, explain: (error: unknown) => Error = toFailure): Mailer {
  let transport: Promise<Transporter> | undefined
  let pretended: Promise<Transporter> | undefined
  const from = { name: settings.senderName ?? '', address: settings.from ?? '' }
  const domain = settings.from?.split('@')[1] ?? 'localhost'
  return {
    async send({ id, kind, to, subject, html, text, isPretended = false }) {
      const messageId = `${id}@${domain}`
      try {
        // RFC 3834: tells auto-responders that nobody reads answers.
        const headers = { 'Auto-Submitted': 'auto-generated', ...headersOf(settings, kind) }
        if (isPretended) pretended ??= openPretendedTransport(settings)
        else transport ??= openTransport(settings)
        const opened = isPretended ? pretended : transport
        const mail = { from, to, subject, html, text, messageId: `<${messageId}>`, headers }
        const attributes = { ...serverOf(settings), 'auth.message.id': id, 'auth.message.kind': kind }
        const options = { scope: 'smtp', name: 'SMTP send', kind: SpanKind.CLIENT, attributes }
        await traced(options, async () => (await opened)?.sendMail(mail))
        return { messageId }
      } catch (error) {
        throw explain(error)
      }
    },
    close() {
      for (const each of [transport, pretended]) {
        each?.then(
          (opened) => opened.close(),
          () => {},
        )
      }
    },
  }
}

const serverOf = ({ host, port }: SmtpSettings) => ({
  'network.protocol.name': 'smtp',
  'server.address': host ?? '',
  'server.port': port,
})

/** The name that existing rules of mail services look for differs from the kind's in one case (contract 5.1). */
const messageType = (kind: string) => (kind === 'reauthentication' ? 'reauthenticate' : kind)

const headersOf = ({ headers }: SmtpSettings, kind: string) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [
      name,
      values.map((value) => value.replaceAll('$messageType', messageType(kind))),
    ]),
  )

async function openTransport(settings: SmtpSettings): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  const { host = '', port, user, password = '', clientName } = settings
  return createTransport({
    host,
    port,
    ...(clientName ? { name: clientName } : {}),
    ...tlsOptions(settings, host, port),
    ...(user ? { auth: { user, pass: password } } : {}),
    pool: true,
    maxConnections: 4,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/** To no server, and without the TLS and the password that it would want. */
async function openPretendedTransport(settings: SmtpSettings): Promise<Transporter> {
  const transport = await openTransport({ ...settings, tls: 'off', user: undefined })
  transport.getSocket = (_options, callback) => callback(null, { connection: openPretendedConnection() })
  return transport
}

/** A password goes over an open line only on this machine, or when `off` says that the line is safe. */
function tlsOptions({ tls, user }: SmtpSettings, host: string, port: number) {
  if (tls === 'off') return { secure: false, ignoreTLS: true }
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)
  return { secure: port === SMTPS_PORT, requireTLS: tls === 'required' || (user !== undefined && !isHere) }
}
