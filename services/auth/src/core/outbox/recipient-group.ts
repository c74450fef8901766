import { createHmac, type KeyObject } from 'node:crypto'
import { organizationOf } from '../../adapters/mail/email-address.ts'
import { blockOf } from '../../adapters/sms/number-block.ts'
import type { MessageChannel } from '../../db/tables.ts'

/** Length of a group's hash; two groups that share it share their slots. */
const GROUP_CHARACTERS = 16

/**
 * Group of a message in the queue: the domain of a mail, the block of numbers of an SMS. It is hashed under a key,
 * because a job holds no part of an address in the clear.
 */
export function recipientGroup(outboxKey: KeyObject, channel: MessageChannel, to: string): string {
  const group = channel === 'mail' ? organizationOf(to) : blockOf(to)
  return createHmac('sha256', outboxKey).update(group).digest('base64url').slice(0, GROUP_CHARACTERS)
}
