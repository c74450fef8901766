// Shared parts of the `users` commands. The one rule: commands call the flows of this folder, so that an operator's input is
// checked and audited like an admin's. The commands: user-commands.ts, list-users-command.ts.
import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { CommandFailure } from '@services/common/cli'
import { ApiError } from '@services/common/errors'
import type { Logger } from '@services/common/logger'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { createPasswords } from '../../core/passwords/hash-password.ts'
import { createLeakedPasswords } from '../../core/passwords/leaked-passwords.ts'
import type { Address } from '../../core/users/address.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import { findUserByAddress, findUserById, type User } from '../../core/users/users.store.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import { onDatabase } from '../../on-database.ts'
import type { UserAdminDeps } from './create-user.ts'

export const OPERATOR: Actor = { id: NIL_UUID, email: 'cli', phone: null, user_metadata: {} }

export const USER_OPERAND =
  'USER is an id, an e-mail address or a phone number; addresses are looked up in the audience of AUTH_JWT_AUD.'

/** Runs `work` on the configured database and fails with the message a caller of the API would get. */
export async function onUsers(work: (deps: UserAdminDeps, log: Logger) => Promise<void>): Promise<void> {
  await onDatabase(async ({ config, db, log }) => {
    const deps: UserAdminDeps = {
      config,
      db,
      leakedPasswords: createLeakedPasswords(config.passwords.leaks, log),
      newId: randomUUID,
      newRowId: randomUUIDv7,
      now: () => new Date(),
      passwords: await createPasswords(config.passwords.hashing),
    }
    try {
      await work(deps, log)
    } catch (error) {
      throw error instanceof ApiError ? new CommandFailure(error.message, { cause: error }) : error
    }
  })
}

export async function findNamedUser({ db, config }: UserAdminDeps, name: string): Promise<User> {
  const user = UUID.test(name)
    ? await findUserById(db, name)
    : await findUserByAddress(db, addressOf(name), config.jwt.audience)
  if (!user) throw new CommandFailure('there is no such user')
  return user
}

const addressOf = (name: string): Address =>
  name.includes('@') ? { channel: 'email', value: parseEmail(name) } : { channel: 'phone', value: parsePhone(name) }
