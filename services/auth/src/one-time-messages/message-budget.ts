import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import type { SmsGuards } from '../sms/sms-guards.ts'
import { testCodeOf } from '../sms/test-numbers.ts'
import type { Address } from '../users/address.ts'

export interface BudgetDeps {
  config: Pick<Config, 'sms'>
  limits: { mailSent(to: string): Promise<void> }
  smsGuards: SmsGuards
  now: () => Date
}

/**
 * Counts a message against what may be sent: mails by address and of all users together, SMS by number, block of numbers and day. Asked
 * before the account is looked up, or the refusal would tell who has one. Nothing is sent to test numbers.
 */
export async function spendMessage(deps: BudgetDeps, { channel, value }: Address): Promise<void> {
  if (channel === 'email') return deps.limits.mailSent(value)
  if (isTestNumber(deps, value)) return
  if (deps.config.sms.providers.length === 0) {
    throw apiError('phone_provider_disabled', { message: 'There is no gateway to send SMS by' })
  }
  await deps.smsGuards.allow(value)
}

export const isTestNumber = ({ config, now }: Pick<BudgetDeps, 'config' | 'now'>, phone: string): boolean =>
  testCodeOf(config.sms.testNumbers, phone, now()) !== undefined
