import type { Config } from '../../config.ts'
import { newAccount } from '../../core/identities/new-account.ts'
import type { User } from '../../core/users/users.store.ts'
import type { MessageRequest } from '../../core/verification-messages/message-request.ts'

/** An account as the address would have one. */
export const nobody = (
  deps: { config: Pick<Config, 'jwt'>; newId: () => string; now: () => Date },
  { address, audience }: Pick<MessageRequest, 'address' | 'audience'>,
): User => newAccount(deps, { address, audience, data: {} }, null).user
