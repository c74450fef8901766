import type { Config } from '../config.ts'

const sendsMail = ({ smtp }: Config) => Boolean(smtp.host)

/** Switches whose default the specification fixes, or a client needs, and which a public service is better off with. */
const SWITCHES: readonly { isOpen: (config: Config) => boolean; advice: string }[] = [
  {
    isOpen: (config) => sendsMail(config) && config.mail.confirmationPageTypes.length === 0,
    advice: 'AUTH_MAILER_LINK_CONFIRMATION_PAGE is disabled: a scanner that opens the links of a mail confirms them',
  },
  {
    isOpen: (config) => sendsMail(config) && Object.values(config.mail.notifications).includes(false),
    advice: 'AUTH_MAILER_NOTIFICATIONS_*_ENABLED: users get no mail about some changes of their own accounts',
  },
  {
    isOpen: ({ passwords }) => passwords.minLength < 8,
    advice: 'AUTH_PASSWORD_MIN_LENGTH is below 8',
  },
  {
    isOpen: ({ passwords }) => !passwords.requireCurrent && !passwords.requireReauthentication,
    advice:
      'AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD is disabled: a stolen session is enough for a new password',
  },
  {
    isOpen: (config) => sendsMail(config) && config.smtp.tls !== 'required',
    advice: 'AUTH_SMTP_TLS is not required: mails with links may leave without encryption',
  },
]

/** What an operator should look at before users come; nothing for a service that only its own machine reaches. */
export function settingsToReview(config: Config): string[] {
  if (/^(localhost|127\.[\d.]+|\[::1\])$/.test(new URL(config.server.externalUrl).hostname)) return []
  return SWITCHES.filter(({ isOpen }) => isOpen(config)).map(({ advice }) => advice)
}
