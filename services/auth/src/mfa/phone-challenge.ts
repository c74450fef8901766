import type { Deps } from '../deps.ts'
import type { Factor } from '../factors/factors.store.ts'
import { FACTOR_CODE_KIND, hashPhoneCode } from '../factors/phone-code.ts'
import { queueMessage } from '../messages/outbox.ts'
import { withMessagesCounted } from '../one-time-messages/message-budget.ts'
import { withinGaps } from '../one-time-messages/send-gap.ts'
import { randomDigits } from '../one-time-tokens/one-time-token.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import type { SmsVariables } from '../sms/deliver-sms.ts'
import { parseChannel } from '../sms/parse-channel.ts'
import { smsText } from '../sms/sms-text.ts'
import { testCodeOf } from '../sms/test-numbers.ts'
import type { Open } from './challenge-factor.ts'

/**
 * Sends a code to the factor's number. Codes are spaced by user and number, so that users of one number do not keep each other
 * waiting. Beginning the factor anew brings no more. Messages to a proven number count in the share of its user.
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
  // Only a number that the user has proven is theirs to have messages sent to.
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
