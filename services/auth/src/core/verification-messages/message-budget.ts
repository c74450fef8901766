// Counting of messages before they are sent. The caps: ../limits/mail-guards.ts, ../limits/sms-guards.ts.
import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import { canSendMail } from '../../adapters/mail/smtp.ts'
import { testCodeOf } from '../../adapters/test-codes.ts'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import { type Refund, whileCounted } from '../limits/limiter.ts'
import type { MailShare, Share } from '../limits/message-guards.ts'
import type { SmsGuards } from '../limits/sms-guards.ts'
import { type FirstAttempts, withFirstAttempts } from '../outbox/first-attempts.ts'
import type { Address } from '../users/address.ts'

export interface BudgetDeps {
  config: Pick<Config, 'mail' | 'sms' | 'smtp'>
  limits: {
    mailSent(to: string, share: MailShare): Promise<Refund>
    signInMailSent(to: string, share: MailShare): Promise<{ isOverCap: boolean; refund: Refund }>
    changeResent(): Promise<Refund>
  }
  smsGuards: SmsGuards
  now: () => Date
  firstAttempts?: FirstAttempts | undefined
}

/**
 * Address of a message, the network that asks for it if trusted, and the quota it counts in; `strangers` when left out.
 */
export type Recipient = { value: string; network?: string | undefined } & (
  | { channel: 'email'; share?: MailShare }
  | { channel: 'phone'; share?: Share }
)

/**
 * Runs `work`, and then its first attempts, with a message to each recipient counted. Mails count by address and of all
 * users together, SMS by number, block of numbers and day. Every link and code is counted here, before the account is
 * read, so that a refusal reveals no account. Nothing counts if a recipient cannot be reached or `work` throws.
 */
export function withMessagesCounted<Result>(
  deps: BudgetDeps,
  recipients: readonly Recipient[],
  work: () => Promise<Result>,
): Promise<Result> {
  const real = recipients.filter((recipient) => !isTestAddress(deps, recipient))
  for (const recipient of real) requireWay(deps, recipient)
  return whileCounted(
    real.map((to) => () => {
      if (to.channel === 'email') return deps.limits.mailSent(to.value, to.share ?? 'strangers')
      return deps.smsGuards.allow(to.value, to)
    }),
    () => withFirstAttempts(deps.firstAttempts, work),
  )
}

/** Counts a sign-in mail or SMS. Over the cap, send an unguessable code: a refusal would lock the owner out. */
export async function withSignInCounted<Result>(
  deps: BudgetDeps,
  recipient: Recipient,
  work: (isOverCap: boolean) => Promise<Result>,
): Promise<Result> {
  if (isTestAddress(deps, recipient)) return work(false)
  requireWay(deps, recipient)
  let isOver = false
  const count = async () => {
    const { isOverCap, refund } = await countSignIn(deps, recipient)
    isOver = isOverCap
    return refund
  }
  return whileCounted([count], () => withFirstAttempts(deps.firstAttempts, () => work(isOver)))
}

const countSignIn = ({ limits, smsGuards }: BudgetDeps, to: Recipient) =>
  to.channel === 'email'
    ? limits.signInMailSent(to.value, to.share ?? 'strangers')
    : smsGuards.allowSignIn(to.value, to)

/** Counts a stranger's resend of a change by the named address only; the worker knows the new one and counts it. */
export async function withResendCounted<Result>(
  deps: BudgetDeps,
  named: Address,
  work: () => Promise<Result>,
): Promise<Result> {
  requireAuthorized(deps, [named])
  return whileCounted([() => deps.limits.changeResent()], () => withFirstAttempts(deps.firstAttempts, work))
}

/** Throws when mail may not go to one of the addresses, whether or not an account has it. */
export function requireAuthorized(deps: TestDeps, recipients: readonly Address[]): void {
  for (const { channel, value } of recipients) {
    if (channel === 'phone' || isTestAddress(deps, { channel, value })) continue
    if (!isAuthorizedAddress(deps.config.mail, value)) throw apiError('email_address_not_authorized')
  }
}

function requireWay(deps: BudgetDeps, { channel, value }: Address): void {
  const { config, smsGuards } = deps
  if (channel === 'email') {
    requireAuthorized(deps, [{ channel, value }])
    if (canSendMail(config)) return
    throw apiError('email_provider_disabled', { message: 'No mail server is configured' })
  }
  if (config.sms.providers.length === 0 && !config.sms.byHook) {
    throw apiError('phone_provider_disabled', { message: 'No SMS gateway is configured' })
  }
  smsGuards.requireAllowedCountry(value)
}

export interface TestDeps {
  config: Pick<Config, 'mail' | 'sms'>
  now: () => Date
}

/** Whether an address has a fixed code, so that nothing is sent to it. */
export const isTestAddress = ({ config, now }: TestDeps, { channel, value }: Address): boolean =>
  testCodeOf(channel === 'email' ? config.mail.testAddresses : config.sms.testNumbers, value, now()) !== undefined
