import { randomUUID } from 'node:crypto'
import { createMailer, type SmtpSettings } from '../../adapters/mail/smtp.ts'
import { explainSmtpError, type SmtpError } from '../../adapters/mail/smtp-failure.ts'

export type MailTestResult = { sent: true; messageId: string } | { sent: false; problem: string; remedy: string }

/** Sends a mail through the configured server, outside the outbox, and explains a failure and its likely cause. */
export async function testMail(settings: SmtpSettings, to: string): Promise<MailTestResult> {
  const mailer = createMailer(settings, (error) => error as Error)
  const text = 'This mail was sent by "mail test" of the auth service. Its mail settings work.\n'
  try {
    const subject = 'Test mail of the auth service'
    const { messageId } = await mailer.send({
      id: randomUUID(),
      kind: 'test',
      to,
      subject,
      text,
      html: `<!doctype html><html lang="en"><title>${subject}</title><p>${text.trim().replaceAll('"', '&quot;')}</p></html>`,
    })
    return { sent: true, messageId }
  } catch (error) {
    return { sent: false, ...explain(error as SmtpError & Error, settings) }
  } finally {
    mailer.close()
  }
}

/** Includes the server's own words: only the operator reads them. */
function explain(error: SmtpError & Error, settings: SmtpSettings): { problem: string; remedy: string } {
  const said = error.response ?? error.message
  return { problem: `${explainSmtpError(error)}: ${said}`, remedy: remedyFor(error, settings) }
}

function remedyFor(
  { code, command = '', responseCode, message }: SmtpError & Error,
  { host, port, tls }: SmtpSettings,
) {
  const server = `${host}:${port}`
  if (code === 'EDNS') return `Is ${host} the right AUTH_SMTP_HOST, and can this machine resolve names?`
  if (code === 'EAUTH' || code === 'ENOAUTH') return 'Check AUTH_SMTP_USER and AUTH_SMTP_PASS.'
  if (code === 'ETLS' || command === 'STARTTLS' || /certificate|self.signed|ssl|tls/i.test(message)) {
    return `AUTH_SMTP_TLS is ${tls}: does ${server} offer TLS, with a certificate for ${host}?`
  }
  if (/^RCPT/.test(command) && responseCode) return 'The server does not want mail for this address from this sender.'
  if (/^MAIL/.test(command) && responseCode) return 'The server does not want mail from AUTH_SMTP_ADMIN_EMAIL.'
  if (/^DATA/.test(command) && responseCode) return 'The server took sender and recipient and refused the message.'
  if (code === 'ETIMEDOUT') {
    return `Nothing answers at ${server} in time: a firewall, a wrong AUTH_SMTP_PORT, or TLS from the start (port 465)?`
  }
  if (/ECONNREFUSED/.test(message)) return `Nothing listens at ${server}: check AUTH_SMTP_HOST and AUTH_SMTP_PORT.`
  return `Check AUTH_SMTP_HOST and AUTH_SMTP_PORT (${server}).`
}
