// Commands that need no database: keys, admin tokens, mail, redirects. Results go to standard output, all else to
// standard error. Tests: test/cli.test.ts, ../../adapters/mail/test-mail.test.ts.
import { randomUUID } from 'node:crypto'
import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { SAMPLE_VARIABLES } from '../../adapters/mail/check-template.ts'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { ALL_KINDS, isMailKind } from '../../adapters/mail/kinds.ts'
import { openMailTemplates } from '../../adapters/mail/mail-templates.ts'
import { createMailer, hasMailServer, type SmtpSettings } from '../../adapters/mail/smtp.ts'
import { explainSmtpError, isTemporary, type SmtpError } from '../../adapters/mail/smtp-failure.ts'
import { startUp } from '../../start.ts'

export const mailPreview = command({
  name: 'mail preview',
  summary: 'print a mail with made-up variables',
  operands: ['KIND'],
  options: {
    locale: { value: 'TAG', meaning: 'its language, such as de' },
    html: { meaning: 'only the HTML part' },
    text: { meaning: 'only the text part' },
  },
  details: `Kinds: ${ALL_KINDS.join(', ')}`,
  run: async ({ options, operands: [name = ''], json }) => {
    const kind = name.toLowerCase().replaceAll('-', '_')
    if (!isMailKind(kind)) throw new UsageError(`there is no mail "${name}", only ${ALL_KINDS.join(', ')}`)
    if (options.html && options.text) throw new UsageError('takes either --html or --text')
    const { config, log } = startUp({ toStderr: true })
    const locale = options.locale?.toLowerCase()
    const { locales } = config.mail
    if (locale !== undefined && !locales.includes(locale)) {
      throw new UsageError(`--locale must be one of AUTH_MAILER_LOCALES, which are ${locales.join(', ')}`)
    }
    const templates = openMailTemplates({ config, log, now: () => new Date() })
    const { subject, html, text } = await templates.render(kind, locale, SAMPLE_VARIABLES[kind])
    const whole = `Subject: ${subject}\n\n${text}\n${html}`
    printResult(json, { subject, html, text }, options.html ? html : options.text ? text : whole)
  },
})

export const mailTest = command({
  name: 'mail test',
  summary: 'send a mail through the configured server and say what fails',
  operands: ['ADDRESS'],
  run: async ({ operands: [address = ''], json }) => {
    requireAddress(address)
    const { smtp } = startUp({ toStderr: true }).config
    if (!hasMailServer(smtp)) {
      throw new CommandFailure('no mail server is configured: AUTH_SMTP_HOST and AUTH_SMTP_ADMIN_EMAIL must be set')
    }
    const result = await testMail(smtp, address)
    if (!result.sent) throw new CommandFailure(`not sent: ${result.problem}\n${result.remedy}`)
    printResult(json, { messageId: result.messageId }, `sent, Message-ID <${result.messageId}>`)
  },
})

function requireAddress(text: string): void {
  try {
    parseEmail(text)
  } catch {
    throw new UsageError('ADDRESS must be an e-mail address')
  }
}

type Failure = SmtpError & Error
type MailTestResult = { sent: true; messageId: string } | { sent: false; problem: string; remedy: string }

/** Sends a mail through the configured server, outside the outbox, and explains a failure and its likely cause. */
export async function testMail(settings: SmtpSettings, to: string): Promise<MailTestResult> {
  const lines: string[] = []
  const onLine = (line: string) => void lines.push(line)
  const mailer = createMailer(settings, { explain: (error) => error as Error, onLine })
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
    const failure = error as Failure
    // Includes the server's own words: only the operator reads them.
    const problem = `${explainSmtpError(failure)}: ${failure.response ?? failure.message}`
    return { sent: false, problem, remedy: remedyFor(failure, settings, lines) }
  } finally {
    mailer.close()
  }
}

const LATER = 'Try again in some minutes: the service itself repeats each mail for a day.'

function remedyFor(failure: Failure, { host, port, tls, authority }: SmtpSettings, lines: readonly string[]) {
  const { code, command = '', responseCode, message } = failure
  const server = `${host}:${port}`
  if (isTemporary(failure)) {
    return `A temporary answer of ${server}: an unknown sender is asked to come back, a limit is reached, or it is busy. ${LATER}`
  }
  if (code === 'EDNS') return `Is ${host} the right AUTH_SMTP_HOST, and can this machine resolve names?`
  if (code === 'EAUTH' || code === 'ENOAUTH') return 'Check AUTH_SMTP_USER and AUTH_SMTP_PASS.'
  if (code === 'ETLS' || command === 'STARTTLS' || /certificate|self.signed|ssl|tls/i.test(message)) {
    const issuer =
      authority === undefined ? 'of a public authority, or of that in AUTH_SMTP_CA_FILE' : 'of AUTH_SMTP_CA_FILE'
    return `AUTH_SMTP_TLS is ${tls}: does ${server} offer TLS, with a certificate for ${host} ${issuer}?`
  }
  if (/^RCPT/.test(command) && responseCode) return 'The server does not want mail for this address from this sender.'
  if (/^MAIL/.test(command) && responseCode) return 'The server does not want mail from AUTH_SMTP_ADMIN_EMAIL.'
  if (/^DATA/.test(command) && responseCode) return 'The server took sender and recipient and refused the message.'
  const last = lines.findLast((line) => /^(MAIL|RCPT|DATA)\b/.test(line))?.slice(0, 4)
  if (last) {
    const ended = code === 'ETIMEDOUT' ? 'fell silent' : 'broke the connection'
    const why = last === 'DATA' ? 'which may still have arrived' : 'which may be a restart, or a block of this machine'
    return `${server} ${ended} after ${last === 'DATA' ? 'the message' : last}, ${why}. ${LATER}`
  }
  if (code === 'ETIMEDOUT') {
    return `Nothing answers at ${server} in time: a firewall, a wrong AUTH_SMTP_PORT, or TLS from the start (port 465)?`
  }
  if (/ECONNREFUSED/.test(message)) return `Nothing listens at ${server}: check AUTH_SMTP_HOST and AUTH_SMTP_PORT.`
  return `Check AUTH_SMTP_HOST and AUTH_SMTP_PORT (${server}).`
}
