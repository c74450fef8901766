import { PermanentFailure } from '@services/common/queue'
import type { Transporter } from 'nodemailer'

export interface SmtpSettings {
  host: string | undefined
  port: number | undefined
  user: string | undefined
  password: string | undefined
  from: string | undefined
  senderName: string | undefined
}

export interface Message {
  /** Stable over retries, so that a mail sent twice after a crash can be recognised. */
  id: string
  to: string
  subject: string
  html: string
  text: string
}

export interface Mailer {
  send(message: Message): Promise<void>
  close(): void
}

/** Implicit TLS (RFC 8314); on other ports STARTTLS is used where the server offers it. */
const SMTPS_PORT = 465

/**
 * A few kept connections; every wait is bounded, a hanging server costs a worker at most 30 s. nodemailer is loaded with
 * the first mail: it is 6 MiB that an idle service does not need.
 */
export function createMailer(settings: SmtpSettings): Mailer {
  let transport: Promise<Transporter> | undefined
  const from = { name: settings.senderName ?? '', address: settings.from ?? '' }
  const domain = settings.from?.split('@')[1] ?? 'localhost'
  return {
    async send({ id, to, subject, html, text }) {
      try {
        // RFC 3834: tells auto-responders that nobody reads answers.
        const headers = { 'Auto-Submitted': 'auto-generated' }
        transport ??= openTransport(settings)
        await (await transport).sendMail({ from, to, subject, html, text, messageId: `<${id}@${domain}>`, headers })
      } catch (error) {
        throw toFailure(error)
      }
    },
    close: () =>
      void transport?.then(
        (opened) => opened.close(),
        () => {},
      ),
  }
}

async function openTransport(settings: SmtpSettings): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    host: settings.host ?? '',
    port: settings.port ?? 587,
    secure: settings.port === SMTPS_PORT,
    ...(settings.user ? { auth: { user: settings.user, pass: settings.password ?? '' } } : {}),
    pool: true,
    maxConnections: 4,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/**
 * What may be logged of a failure: servers quote the recipient in their answers, nodemailer keeps it beside them. RFC 5321
 * 4.2.1: 5yz is permanent; at RCPT and DATA it is about this recipient or message, not about the connection.
 */
function toFailure(error: unknown): Error {
  const { code, command, responseCode } = error as { code?: string; command?: string; responseCode?: number }
  const text = `mail server: ${[code, command, responseCode].filter(Boolean).join(' ') || 'failed'}`
  const isRefusedForGood = (responseCode ?? 0) >= 500 && /^(RCPT|DATA)/.test(command ?? '')
  return isRefusedForGood ? new PermanentFailure(text) : new Error(text)
}
