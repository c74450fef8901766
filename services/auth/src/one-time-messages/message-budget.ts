import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { testCodeOf } from '../sms/test-numbers.ts'
import type { Address } from '../users/address.ts'

/**
 * Counts a message against what may be sent: mails of all users together, SMS by number, block of numbers and day. Asked
 * before the account is looked up, or the refusal would tell who has one. Nothing is sent to test numbers.
 */
export async function spendMessage(deps: Deps, { channel, value }: Address): Promise<void> {
  if (channel === 'email') return deps.limits.mailSent()
  if (isTestNumber(deps, value)) return
  if (deps.config.sms.providers.length === 0) {
    throw apiError('phone_provider_disabled', { message: 'There is no gateway to send SMS by' })
  }
  await deps.smsGuards.allow(value)
}

export const isTestNumber = ({ config, now }: Pick<Deps, 'config' | 'now'>, phone: string): boolean =>
  testCodeOf(config.sms.testNumbers, phone, now()) !== undefined
