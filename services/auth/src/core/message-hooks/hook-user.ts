import type { Kysely } from 'kysely'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { blankUser } from '../identities/new-account.ts'
import type { OutgoingMessage } from '../outbox/deliver-message.ts'
import { registeredBody } from '../sessions/user-answers.ts'
import type { UserBody } from '../users/user-shape.ts'
import { findUserById, type User } from '../users/users.store.ts'

export interface HookUserDeps {
  db: Kysely<DB>
  now: () => Date
  config: Pick<Config, 'jwt' | 'sessions'>
}

/** Parts of the user that the message knows better than the row. */
interface Own {
  /** Id of a deleted user, in a message about the deletion. */
  id?: string
  email?: string
  phone?: string
  email_change: string | null
  phone_change: string | null
  /** Data that the recipient may see: an account's is a stranger's until its address is proven. */
  user_metadata: Metadata
}

/**
 * Returns the user of a message for its hook, by one statement whatever the account has, which a pretended message
 * makes as well. Pending changes are those of the message.
 */
export async function userOf(
  deps: HookUserDeps,
  { id, userId, isPretended }: Pick<OutgoingMessage, 'id' | 'userId' | 'isPretended'>,
  own: Own,
): Promise<UserBody> {
  const user = (await findUserById(deps.db, userId ?? id)) ?? (isPretended || own.id ? decoy(deps, id) : undefined)
  if (!user) throw new TemporaryFailure('its user was deleted meanwhile')
  const changes = { email_change_session_id: null, phone_change_session_id: null }
  return registeredBody(deps, deps.db, { ...user, ...changes, ...own })
}

const decoy = ({ config, now }: HookUserDeps, id: string): User =>
  blankUser(id, 'authenticated', config.jwt.defaultRole, now())
