// Commands that need no database: keys, admin tokens, mail, redirects. The one rule: results go to standard output, all else to
// standard error. Tests: test/cli.test.ts, ../../adapters/mail/test-mail.test.ts. Read next: ../../commands.ts.
import { CommandFailure, command, printResult, UsageError } from '@services/common/cli'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { ALL_KINDS, isMailKind } from '../../adapters/mail/kinds.ts'
import { openMailTemplates } from '../../adapters/mail/mail-templates.ts'
import { SAMPLE_VARIABLES } from '../../adapters/mail/sample-variables.ts'
import { hasMailServer } from '../../adapters/mail/smtp.ts'
import { startUp } from '../../start.ts'
import { testMail } from './test-mail.ts'

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
