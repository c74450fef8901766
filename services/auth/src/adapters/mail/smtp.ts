// Hands one mail to the mail server. Retries: core/outbox/outbox.ts; which failures are retried: smtp-failure.ts.
import { SpanKind } from '@opentelemetry/api'
import { traced } from '@services/common/telemetry/spans'
import type { Transporter } from 'nodemailer'
import type { Config } from '../../config.ts'
import { toFailure } from './smtp-failure.ts'

export type SmtpSettings = Config['smtp']

/** Connections to the mail server of one process, opened as they are needed; the worker sends as many mails at once. */
export const MAX_CONNECTIONS = 8

/** Implicit TLS (RFC 8314); on other ports STARTTLS is used where the server offers it. */
const SMTPS_PORT = 465

/**
 * Whether a mail server can be used; configuration requires one only while e-mail sign-in is enabled and no hook sends.
 */
export const hasMailServer = ({ host, from }: Pick<SmtpSettings, 'host' | 'from'>): boolean =>
  host !== undefined && from !== undefined

/** Whether mail can be sent: by the send-email hook, or by a server. */
export const canSendMail = (config: {
  mail: Pick<Config['mail'], 'byHook'>
  smtp: Pick<SmtpSettings, 'host' | 'from'>
}): boolean => config.mail.byHook || hasMailServer(config.smtp)

export interface Message {
  /** Stable over retries, so that receivers can recognise a mail that was sent twice after a crash. */
  id: string
  kind: string
  to: string
  subject: string
  html: string
  text: string
  /** Composed like any other, but never sent. */
  isPretended?: boolean
}

export type Mailer = ReturnType<typeof createMailer>

/** Longest wait for an answer of the mail server. */
export const ANSWER_WITHIN_MS = 30_000

interface MailerOptions {
  explain?: (error: unknown) => Error
  answerWithinMs?: number
  /** Called with each line of either side, without passwords and contents. */
  onLine?: ((line: string) => void) | undefined
}

/** Keeps a few connections. The first mail loads nodemailer (6 MiB). */
export function createMailer(
  settings: SmtpSettings,
  { explain = toFailure, answerWithinMs = ANSWER_WITHIN_MS, onLine }: MailerOptions = {},
) {
  let transport: Promise<Transporter> | undefined
  let pretended: Promise<Transporter> | undefined
  const from = { name: settings.senderName ?? '', address: settings.from ?? '' }
  const domain = settings.from?.split('@')[1] ?? 'localhost'
  return {
    /** Throws the error that `explain` returns: by default a TemporaryFailure or PermanentFailure fit for the log. */
    async send({ id, kind, to, subject, html, text, isPretended = false }: Message): Promise<{ messageId: string }> {
      const messageId = `${id}@${domain}`
      try {
        // RFC 3834: asks auto-responders not to answer.
        const headers = { 'Auto-Submitted': 'auto-generated', ...headersOf(settings, kind) }
        if (isPretended) pretended ??= openPretendedTransport()
        else transport ??= openTransport(settings, answerWithinMs, onLine)
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
    close(): void {
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

/**
 * Name that existing rules of mail services match; it differs from the kind in one case
 * (contract/auth-platform.md 5.1).
 */
const messageType = (kind: string) => (kind === 'reauthentication' ? 'reauthenticate' : kind)

const headersOf = ({ headers }: SmtpSettings, kind: string) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [
      name,
      values.map((value) => value.replaceAll('$messageType', messageType(kind))),
    ]),
  )

async function openTransport(
  settings: SmtpSettings,
  answerWithinMs: number,
  onLine?: (line: string) => void,
): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  const { host = '', port, user, password = '', clientName } = settings
  return createTransport({
    host,
    port,
    ...(clientName ? { name: clientName } : {}),
    ...tlsOptions(settings, host, port),
    ...(user ? { auth: { user, pass: password } } : {}),
    pool: true,
    maxConnections: MAX_CONNECTIONS,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: answerWithinMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(onLine && { transactionLog: true, logger: lineLogger(onLine) }),
  })
}

/** Logger of nodemailer that passes on the lines of a session alone. */
function lineLogger(onLine: (line: string) => void) {
  const log = ({ tnx }: { tnx?: string }, line: unknown) => {
    if (tnx === 'client' || tnx === 'server') onLine(String(line))
  }
  return { level: () => {}, trace: log, debug: log, info: log, warn: log, error: log, fatal: log }
}

/**
 * Opens a transport that composes a mail and drops it, in 0.6 ms. A dialogue with a mail server makes that 1.2 ms, most
 * of which is waiting, so imitating one hides nothing more.
 */
async function openPretendedTransport(): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({ streamTransport: true, buffer: true, disableFileAccess: true, disableUrlAccess: true })
}

/** A password leaves this machine without TLS only if `off` declares the line safe. */
function tlsOptions({ tls, user, authority }: SmtpSettings, host: string, port: number) {
  if (tls === 'off') return { secure: false, ignoreTLS: true }
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host)
  return {
    secure: port === SMTPS_PORT,
    requireTLS: tls === 'required' || (user !== undefined && !isHere),
    ...(authority !== undefined && { tls: { ca: authority } }),
  }
}
