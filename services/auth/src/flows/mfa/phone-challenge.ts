import { parseChannel } from '../../adapters/sms/parse-channel.ts'
import { smsText } from '../../adapters/sms/sms-text.ts'
import { testCodeOf } from '../../adapters/sms/test-numbers.ts'
import type { Factor } from '../../core/factors/factors.store.ts'
import { hashPhoneCode } from '../../core/factors/phone-code.ts'
import { randomDigits } from '../../core/one-time-tokens/one-time-token.ts'
import { FACTOR_CODE_KIND, type SmsVariables } from '../../core/outbox/deliver-sms.ts'
import { queueMessage } from '../../core/outbox/outbox.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { withMessagesCounted } from '../../core/verification-messages/message-budget.ts'
import { withinGaps } from '../../core/verification-messages/send-gap.ts'
import type { Deps } from '../../deps.ts'
import type { Open } from './challenge-parts.ts'

/**
 * Sends a code to the factor's number. The gap between codes is per user and number: users of one number do not delay each
 * other, and enrolling the factor anew does not reset it. Messages to a proven number count in its user's share.
 */
export async function sendPhoneCode(
  deps: Deps,
  { user }: Pick<LiveCaller, 'user'>,
  factor: Factor,
  { channel, challengeId }: { channel: string | undefined; challengeId: string },
  open: Open,
): Promise<void> {
  const { sms, mfa } = deps.config
  const to = factor.phone ?? ''
  const smsChannel = parseChannel(sms, channel)
  const testCode = testCodeOf(sms.testNumbers, to, deps.now())
  const code = testCode ?? randomDigits(deps.random, mfa.phone.codeLength)
  const codeHash = hashPhoneCode(deps.codeKey, challengeId, code)
  const variables: SmsVariables = { code, channel: smsChannel, text: smsText(mfa.phone.template, code) }
  const message = {
    channel: 'sms',
    kind: FACTOR_CODE_KIND,
    userId: user.id,
    to,
    variables,
    lifetimeSeconds: null,
  } as const
  // A number that is not proven may be a stranger's.
  const share = factor.status === 'verified' ? { userId: user.id } : 'anybody'
  await withinGaps(deps, [{ kind: 'second_factor', key: `${user.id} ${to}` }], () =>
    withMessagesCounted(deps, [{ channel: 'phone', value: to, share }], () =>
      open({
        codeHash,
        async whenOpen(trx) {
          if (!testCode) await queueMessage(deps, trx, message)
        },
      }),
    ),
  )
}
