import { ApiError } from '@services/common/errors'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { hookBehind } from '../hooks/hooks.ts'
import type { Counted } from '../hooks/questions.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import { isEmailTaken } from '../users/addresses.store.ts'
import { hasRegistrant } from '../users/registrants.store.ts'
import { lockAndReadUser } from '../users/users.store.ts'
import { sendEmailChange } from '../verification-messages/address-change.ts'
import type { LinkMailDeps, MailContext } from '../verification-messages/link-mail.ts'
import { type BudgetDeps, withMessagesCounted } from '../verification-messages/message-budget.ts'
import { type SendGapDeps, withinGaps } from '../verification-messages/send-gap.ts'

export type RequestMailDeps = LinkMailDeps & BudgetDeps & SendGapDeps & { db: Kysely<DB> }

export interface RequestedEmail {
  userId: string
  email: string
  context: MailContext
  /** Session that requests the address; null: none. */
  sessionId: string | null
  pkce?: Pkce | undefined
}

/** Sends the link that gives an account in use the address that it requests. For a taken one nothing leaves. */
export const isChangeSent = (deps: RequestMailDeps, { userId, email, context, sessionId, pkce }: RequestedEmail) =>
  isSentIn(deps, email, async (trx) => {
    const user = await lockAndReadUser(trx, userId)
    if (user?.email_change !== email) return
    const held = { address: { channel: 'email', value: email }, audience: user.aud, exceptId: userId } as const
    const isTaken = (await isEmailTaken(trx, email, user.aud, userId)) && !(await hasRegistrant(trx, held))
    const delivery = isTaken ? 'pretended' : 'real'
    await sendEmailChange(deps, trx, user, email, { context, sessionId, delivery, pkce })
  })

/** Sends a mail in a transaction of its own. */
export const isSentIn = (deps: RequestMailDeps, email: string, send: (trx: Transaction<DB>) => Promise<void>) =>
  isSent(deps, email, (counted) => counted(() => deps.db.transaction().execute(send)))

/**
 * Sends a mail by work that has its own transaction, and runs that `counted`: limits are counted outside of one. False:
 * a limit refused it.
 */
export async function isSent(
  deps: RequestMailDeps,
  email: string,
  send: (counted: Counted) => Promise<void>,
): Promise<boolean> {
  const address = { channel: 'email', value: email } as const
  try {
    await send((work) =>
      withinGaps(deps, [{ kind: 'confirmation', key: email }], () => withMessagesCounted(deps, [address], work)),
    )
    return true
  } catch (error) {
    if (error instanceof ApiError && !hookBehind(error)) return false
    throw error
  }
}
