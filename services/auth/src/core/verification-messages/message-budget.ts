import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import { hasMailServer } from '../../adapters/mail/smtp.ts'
import { testCodeOf } from '../../adapters/sms/test-numbers.ts'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import type { MailShare, Share } from '../limits/guards.ts'
import { type GiveBack, whileCounted } from '../limits/limiter.ts'
import type { PasswordAttempts } from '../limits/password-attempts.ts'
import type { SmsGuards } from '../limits/sms-guards.ts'
import type { Address } from '../users/address.ts'

export interface BudgetDeps {
  config: Pick<Config, 'mail' | 'sms' | 'smtp'>
  limits: {
    mailSent(to: string, share: MailShare): Promise<GiveBack>
    signInMailSent(to: string, share: MailShare): Promise<{ isOverCap: boolean; giveBack: GiveBack }>
    changeResent(): Promise<GiveBack>
    knownClient: PasswordAttempts['knownClient']
  }
  smsGuards: SmsGuards
  now: () => Date
}

/** Address of a message, and the share it counts in: anybody's when left out. */
export type Recipient = { value: string } & (
  | { channel: 'email'; share?: MailShare }
  | { channel: 'phone'; share?: Share }
)

/**
 * Runs `work` with a message to each recipient counted: mails by address and of all users together, SMS by number, block of
 * numbers and day. Every link and code is counted here, before the account is read, or a refusal would reveal who has one.
 * Nothing is counted when a recipient cannot be reached, and nothing stays counted when `work` throws.
 */
export function withMessagesCounted<Result>(
  deps: BudgetDeps,
  recipients: readonly Recipient[],
  work: () => Promise<Result>,
): Promise<Result> {
  const real = recipients.filter(({ channel, value }) => channel === 'email' || !isTestNumber(deps, value))
  for (const recipient of real) requireWay(deps, recipient)
  return whileCounted(
    real.map((to) => () => {
      if (to.channel === 'email') return deps.limits.mailSent(to.value, to.share ?? 'anybody')
      return deps.smsGuards.allow(to.value, to.share)
    }),
    work,
  )
}

/**
 * The same for a mail to sign in or recover by. A mailbox that has had its share is not refused one, or anybody could keep its
 * owner out: then `work` is told, and what it sends must hold nothing that can be guessed.
 */
export async function withSignInMailCounted<Result>(
  deps: BudgetDeps,
  recipient: Recipient,
  work: (isOverCap: boolean) => Promise<Result>,
): Promise<Result> {
  requireWay(deps, recipient)
  let isOver = false
  const count = async () => {
    const { isOverCap, giveBack } = await deps.limits.signInMailSent(recipient.value, recipient.share ?? 'anybody')
    isOver = isOverCap
    return giveBack
  }
  return whileCounted([count], () => work(isOver))
}

/**
 * The same for a change that a stranger asks to be sent again: where to, only the worker knows, which counts it there. The
 * caller is only told about the address they named.
 */
export async function withResendCounted<Result>(
  deps: BudgetDeps,
  named: Address,
  work: () => Promise<Result>,
): Promise<Result> {
  requireAuthorized(deps, [named])
  return whileCounted([() => deps.limits.changeResent()], work)
}

/** Throws when mail may not go to one of the addresses; says nothing about who has it. */
export function requireAuthorized({ config }: { config: Pick<Config, 'mail'> }, recipients: readonly Address[]): void {
  for (const { channel, value } of recipients) {
    if (channel === 'email' && !isAuthorizedAddress(config.mail, value)) throw apiError('email_address_not_authorized')
  }
}

/** Throws when no message can go there, whoever asks. */
function requireWay({ config, smsGuards }: BudgetDeps, { channel, value }: Address): void {
  if (channel === 'email') {
    requireAuthorized({ config }, [{ channel, value }])
    if (hasMailServer(config.smtp)) return
    throw apiError('email_provider_disabled', { message: 'There is no mail server to send by' })
  }
  if (config.sms.providers.length === 0) {
    throw apiError('phone_provider_disabled', { message: 'There is no gateway to send SMS by' })
  }
  smsGuards.requireAllowedCountry(value)
}

/** Nothing is sent to test numbers. */
export const isTestNumber = (
  { config, now }: { config: Pick<Config, 'sms'>; now: () => Date },
  phone: string,
): boolean => testCodeOf(config.sms.testNumbers, phone, now()) !== undefined
