import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import type { Share } from '../limits/guards.ts'
import { type GiveBack, whileCounted } from '../limits/limiter.ts'
import type { PasswordTries } from '../limits/password-tries.ts'
import { isAuthorizedAddress } from '../mail/authorized-addresses.ts'
import { hasMailServer } from '../mail/smtp.ts'
import type { SmsGuards } from '../sms/sms-guards.ts'
import { testCodeOf } from '../sms/test-numbers.ts'
import type { Address } from '../users/address.ts'

export interface BudgetDeps {
  config: Pick<Config, 'mail' | 'sms' | 'smtp'>
  limits: {
    mailSent(to: string, share: Share): Promise<GiveBack>
    signInMailSent(to: string, share: Share): Promise<{ isOverCap: boolean; giveBack: GiveBack }>
    changeResent(): Promise<GiveBack>
    knownClient: PasswordTries['knownClient']
  }
  smsGuards: SmsGuards
  now: () => Date
}

export type Recipient = Address & {
  /** Anybody's when left out. */
  share?: Share
}

/**
 * Whatever sends a link or code passes here. Runs `work` with a message to each recipient counted against what may be sent:
 * mails by address and of all users together, SMS by number, block of numbers and day, in the share of whoever asks. Asked before the account is looked up,
 * or the refusal would tell who has one. Nothing is counted when one of them cannot be sent to, and nothing stays counted when
 * `work` throws: no message left then.
 */
export function withMessagesCounted<Result>(
  deps: BudgetDeps,
  recipients: readonly Recipient[],
  work: () => Promise<Result>,
): Promise<Result> {
  const real = recipients.filter(({ channel, value }) => channel === 'email' || !isTestNumber(deps, value))
  for (const recipient of real) requireWay(deps, recipient)
  return whileCounted(
    real.map(
      ({ channel, value, share = 'anybody' }) =>
        () =>
          channel === 'email' ? deps.limits.mailSent(value, share) : deps.smsGuards.allow(value, share),
    ),
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
