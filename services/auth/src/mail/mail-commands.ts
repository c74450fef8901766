import { CommandFailure, command, printResult, UsageError } from '@services/common/cli'
import { startUp } from '../start.ts'
import { ALL_KINDS } from './kinds.ts'
import { openMailTemplates } from './mail-templates.ts'
import { mailKindNamed, previewMail } from './preview-mail.ts'
import { testMail } from './test-mail.ts'

/** `mail preview`: a mail as it would leave, with made-up variables. */
export const mailPreview = command({
  name: 'mail preview',
  summary: 'print a mail with made-up variables',
  operands: ['KIND'],
  options: {
    locale: { value: 'TAG', meaning: 'its language, such as de' },
    html: { meaning: 'the HTML part alone' },
    text: { meaning: 'the text part alone' },
  },
  details: `Kinds: ${ALL_KINDS.join(', ')}`,
  run: async ({ options, operands: [name = ''], json }) => {
    const kind = mailKindNamed(name)
    if (!kind) throw new UsageError(`there is no mail "${name}", only ${ALL_KINDS.join(', ')}`)
    const { config, log } = startUp({ toStderr: true })
    const templates = openMailTemplates({ config, log, now: () => new Date() })
    const { subject, html, text } = await previewMail(templates, kind, options.locale)
    const whole = `Subject: ${subject}\n\n${text}\n${html}`
    printResult(json, { subject, html, text }, options.html ? html : options.text ? text : whole)
  },
})

/** `mail test`: sends a mail through the configured server and says in words what fails. */
export const mailTest = command({
  name: 'mail test',
  summary: 'send a mail through the configured server and say what fails',
  operands: ['ADDRESS'],
  run: async ({ operands: [address = ''], json }) => {
    const { config } = startUp({ toStderr: true })
    const result = await testMail(config.smtp, address)
    if (!result.sent) throw new CommandFailure(`not sent: ${result.problem}\n${result.remedy}`)
    printResult(json, { messageId: result.messageId }, `sent, Message-ID <${result.messageId}>`)
  },
})
