// Channels of the outbox that ask a hook instead of a mail server or gateway. The outbox retries, so a receiver that is
// down delays messages and loses none. The id of the question is the message's at every attempt. A refusal ends the
// message. Payloads: email-data.ts, hook-user.ts; attempts of requests: ../outbox/first-attempts.ts.
// Tests: ../../../test/send-hooks.test.ts.
import type { Logger } from '@services/common/telemetry/logger'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { isMailKind } from '../../adapters/mail/kinds.ts'
import type { MailTemplates } from '../../adapters/mail/mail-templates.ts'
import type { Config } from '../../config.ts'
import { recordOrigin } from '../audit/audit.ts'
import type { Hooks } from '../hooks/hooks.ts'
import type { HookPayloads } from '../hooks/payloads.ts'
import { type RandomBytes, randomDigits } from '../one-time-tokens/one-time-token.ts'
import { requireAuthorizedMails } from '../outbox/channels.ts'
import type { Channel, OutgoingMessage, Receipt } from '../outbox/deliver-message.ts'
import { FACTOR_CODE_KIND } from '../outbox/outbox.ts'
import { emailData, emailOfUser, type RenderedMail } from './email-data.ts'
import { toDeliveryFailure } from './hook-failure.ts'
import { type HookUserDeps, userOf } from './hook-user.ts'
import { smsData } from './sms-data.ts'

export interface HookChannelDeps extends HookUserDeps {
  config: Pick<Config, 'jwt' | 'mail' | 'server' | 'sessions'>
  hooks: Hooks
  log: Logger
  random: RandomBytes
  /** Whether the outbox repeats a delivery that failed. */
  isRepeated: boolean
}

/**
 * Attempts at one delivery that is repeated: the second, at once, finds an idle connection that the receiver closed.
 */
const OF_OUTBOX = 2

const RECEIPT: Receipt = { provider: 'hook', providerMessageId: null }

export const mailHookChannel =
  (deps: HookChannelDeps, templates: MailTemplates): Channel<'mail'> =>
  async (message) => {
    const { kind, locale = deps.config.mail.defaultLocale, second, variables } = message
    // Only a newer version can have queued an unknown kind; its own worker sends it.
    if (!isMailKind(kind)) throw new TemporaryFailure('this version knows no such mail')
    requireAuthorizedMails(deps.config, [message, second])
    const mails: RenderedMail[] = []
    for (const part of second ? [message, second] : [message]) {
      mails.push({ ...part, ...(await templates.render(kind, locale, part.variables)) })
    }
    const user = await userOf(deps, message, {
      ...('UserID' in variables && { id: variables.UserID }),
      email: emailOfUser(kind, message),
      email_change: 'NewEmail' in variables ? variables.NewEmail : null,
      phone_change: null,
      user_metadata: variables.Data,
    })
    const externalUrl = message.externalUrl ?? deps.config.server.externalUrl
    const voidToken = () => ({
      code: randomDigits(deps.random, deps.config.mail.codeLength),
      linkToken: deps.random(32).toString('base64url'),
    })
    const email_data = emailData({ kind, mails, locale, externalUrl, voidToken })
    return ask(deps, 'send-email', message, { user, email_data }, secretsOfMail(email_data))
  }

/** Addresses, codes and link tokens of a mail; a token without `pkce_` too, because a receiver may quote it so. */
function secretsOfMail(data: ReturnType<typeof emailData>): string[] {
  const hashes = [data.token_hash, data.token_hash_new].map((hash) => hash.replace(/^pkce_/, ''))
  return [...hashes, data.token, data.token_new, data.recipient, data.recipient_new, data.old_email, data.old_phone]
}

/** Kinds of SMS to a number that the user does not have yet, or has for something else than signing in. */
const TO_OTHER_NUMBER: readonly string[] = ['phone_change', FACTOR_CODE_KIND]

export const smsHookChannel =
  (deps: HookChannelDeps): Channel<'sms'> =>
  async (message) => {
    const { kind, to, variables } = message
    const user = await userOf(deps, message, {
      ...(!TO_OTHER_NUMBER.includes(kind) && { phone: to }),
      email_change: null,
      phone_change: kind === 'phone_change' ? to : null,
      user_metadata: variables.data ?? {},
    })
    return ask(deps, 'send-sms', message, { user, sms: smsData(message) }, [to, variables.code])
  }

/** The question has the id of the message; a pretended one is made and signed, and not sent. */
async function ask<Point extends 'send-email' | 'send-sms'>(
  { hooks, log, isRepeated }: HookChannelDeps,
  point: Point,
  { id, ip, isPretended }: OutgoingMessage,
  payload: HookPayloads[Point],
  secretsOfMessage: readonly string[],
): Promise<Receipt> {
  const { email, phone, new_email = '', new_phone = '' } = payload.user
  const secrets = [...secretsOfMessage, email, phone, new_email, new_phone]
  const messageLog = log.child({ messageId: id })
  recordOrigin(messageLog, () => ({ ip: ip ?? null, userAgent: null }))
  try {
    await hooks.ask(point, messageLog, payload, { id, maxAttempts: isRepeated ? OF_OUTBOX : undefined, isPretended })
    return RECEIPT
  } catch (error) {
    throw toDeliveryFailure(error, secrets)
  }
}
