import { newAccount } from '../../core/identities/new-account.ts'
import type { User } from '../../core/users/users.store.ts'
import type { MessageRequest } from '../../core/verification-messages/message-request.ts'
import type { Deps } from '../../deps.ts'

/** The account that an unknown address would have, for doing the same work as with a known one. */
export const decoyUser = (deps: Deps, { address, audience }: MessageRequest): User =>
  newAccount(deps, { address, audience, data: {} }, null).user
