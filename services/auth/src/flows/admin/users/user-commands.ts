// The `users` commands for one user; list-users-command.ts lists them. Commands call the flows of this folder, so that
// an operator's input is checked and audited like an admin's.
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { DURATION_FORM } from '@services/common/config/duration'
import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { createPasswords } from '../../../core/passwords/hash-password.ts'
import { createLeakedPasswords } from '../../../core/passwords/leaked-passwords.ts'
import { endAllSessions } from '../../../core/sessions/end-session.ts'
import { registeredBody } from '../../../core/sessions/user-answers.ts'
import type { Address } from '../../../core/users/address.ts'
import { parsePhone } from '../../../core/users/phone-number.ts'
import { findUserByAddress, findUserById, type User } from '../../../core/users/users.store.ts'
import { UUID } from '../../../db/uuid.ts'
import { type CommandDeps, onDatabase, onOutbox } from '../../../on-database.ts'
import { bannedUntil, LONGEST_BAN } from './ban-duration.ts'
import { createUser, type UserAdminDeps } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { updateUser } from './update-user.ts'
import { deleteUserFactor } from './user-factors.ts'
import type { UserUpdate } from './user-input.ts'

export const USER_OPERAND =
  'USER is an id, an e-mail address or a phone number; addresses are looked up in the audience of AUTH_JWT_AUD.'

const NAMED_USER = { operands: ['USER'], details: USER_OPERAND }
export const PASSWORD_STDIN = { meaning: 'read the password from the first line of standard input' }

export const usersCreate = command({
  name: 'users create',
  summary: 'create a user, without sending anything',
  options: {
    email: { value: 'ADDRESS', meaning: 'their e-mail address; this or --phone is required' },
    phone: { value: 'NUMBER', meaning: 'their phone number (E.164)' },
    'email-confirm': { meaning: 'the e-mail address counts as proven' },
    'phone-confirm': { meaning: 'the number counts as proven' },
    role: { value: 'ROLE', meaning: 'their role; AUTH_JWT_DEFAULT_GROUP_NAME if absent' },
    id: { value: 'UUID', meaning: 'their id; generated if absent' },
    'password-stdin': PASSWORD_STDIN,
  },
  details: 'Without --password-stdin the user has no password. No rule on its strength applies.',
  run: async ({ options, json }) => {
    if (!options.email && !options.phone) throw new UsageError('needs --email or --phone')
    await onUsers(async (deps, { log, operator }) => {
      const user = await createUser(deps, log, operator, {
        id: options.id,
        email: options.email,
        phone: options.phone,
        role: options.role,
        password: options['password-stdin'] ? await readPassword() : undefined,
        email_confirm: options['email-confirm'],
        phone_confirm: options['phone-confirm'],
      })
      await printUser(deps, json, user, `created ${user.id}`)
    })
  },
})

/** `users ban`: sessions stay, but cannot be used. */
export const usersBan = command({
  name: 'users ban',
  summary: 'keep a user out for a time',
  ...NAMED_USER,
  options: { for: { value: 'DURATION', meaning: 'from now on, as in 7d or 1h30m, up to 292 years; required' } },
  run: async ({ operands: [name = ''], options: { for: duration = '' }, json }) => {
    if (!isInFuture(duration)) throw new UsageError(`--for must be ${DURATION_FORM}, more than zero and ${LONGEST_BAN}`)
    await changeNamed(json, name, { ban_duration: duration }, (user) => {
      return `${user.id} is banned until ${user.banned_until?.toISOString()}`
    })
  },
})

export const usersUnban = command({
  name: 'users unban',
  summary: 'lift the ban of a user',
  ...NAMED_USER,
  run: ({ operands: [name = ''], json }) =>
    changeNamed(json, name, { ban_duration: 'none' }, ({ id }) => `${id} is not banned`),
})

export const usersSetPassword = command({
  name: 'users set-password',
  summary: 'set the password of a user and end all their sessions',
  ...NAMED_USER,
  options: { 'password-stdin': { meaning: `${PASSWORD_STDIN.meaning}; required` } },
  run: async ({ operands: [name = ''], options, json }) => {
    if (!options['password-stdin'])
      throw new UsageError('needs --password-stdin: other users of this machine can read arguments')
    const password = await readPassword()
    await changeNamed(json, name, { password }, ({ id }) => `${id} has a new password and no session`)
  },
})

export const usersSetRole = command({
  name: 'users set-role',
  summary: 'change the role of a user',
  operands: ['USER', 'ROLE'],
  details: `${USER_OPERAND}\nAccess tokens already issued keep the old role until they expire.`,
  run: async ({ operands: [name = '', role = ''], json }) => {
    if (role === '') throw new UsageError('ROLE must not be empty')
    await changeNamed(json, name, { role }, (user) => `${user.id} has the role ${user.role}`)
  },
})

export const usersDelete = command({
  name: 'users delete',
  summary: 'delete a user and all their data',
  ...NAMED_USER,
  options: {
    soft: { meaning: 'keep the id, and nothing that identifies the user' },
    yes: { meaning: 'required: a deleted user cannot be restored' },
  },
  run: async ({ operands: [name = ''], options: { soft, yes }, json }) => {
    if (!yes) throw new UsageError('needs --yes: a deleted user cannot be restored')
    await onUsers(async (deps, { log, operator }) => {
      const { id } = await findNamedUser(deps, name)
      const deletion = soft ? 'soft' : 'hard'
      await deleteUser(deps, log, operator, id, deletion)
      printResult(json, { id, deletion }, soft ? `deleted ${id} and kept the id` : `deleted ${id}`)
    })
  },
})

export const usersConfirm = command({
  name: 'users confirm',
  summary: "count a user's address as proven, without a message",
  ...NAMED_USER,
  options: { phone: { meaning: 'the phone number in place of the e-mail address' } },
  run: async ({ operands: [name = ''], options: { phone }, json }) => {
    const channel = phone ? 'phone' : 'email'
    await onUsers(async (deps, { log, operator }) => {
      const { id, [channel]: address } = await findNamedUser(deps, name)
      if (!address) throw new CommandFailure(`${id} has no ${phone ? 'phone number' : 'e-mail address'}`)
      const user = await updateUser(deps, log, operator, id, { [`${channel}_confirm`]: true })
      await printUser(deps, json, user, `${id} has proven ${user[channel]}`)
    })
  },
})

export const usersSetEmail = command({
  name: 'users set-email',
  summary: 'change the e-mail address of a user at once, without a message',
  operands: ['USER', 'ADDRESS'],
  options: { confirm: { meaning: 'the new address counts as proven' } },
  details: `${USER_OPERAND}\nAn address that was proven stays so with the new one. Links and codes sent before end.`,
  run: async ({ operands: [name = '', email = ''], options: { confirm }, json }) => {
    const update = { email: parseEmail(email), ...(confirm && { email_confirm: true }) }
    await changeNamed(json, name, update, (user) => {
      return `${user.id} has the address ${user.email}, ${user.email_confirmed_at ? 'proven' : 'not proven yet'}`
    })
  },
})

export const usersSignOut = command({
  name: 'users sign-out',
  summary: 'end all sessions of a user',
  ...NAMED_USER,
  details: `${USER_OPERAND}\nAccess tokens already issued stay valid until they expire.`,
  run: ({ operands: [name = ''], json }) =>
    onUsers(async (deps, { log, operator }) => {
      const user = await findNamedUser(deps, name)
      await endAllSessions(deps, log, operator, user)
      await printUser(deps, json, user, `${user.id} has no session`)
    }),
})

export const usersRemoveFactor = command({
  name: 'users remove-factor',
  summary: 'remove a second factor of a user, who may have lost it',
  operands: ['USER', 'FACTOR'],
  details: `${USER_OPERAND}\nFACTOR is an id, as users show prints it. The user gets the mail that the settings permit.`,
  run: ({ operands: [name = '', factorId = ''], json }) =>
    onOutbox(async (deps) => {
      const { id } = await findNamedUser(deps, name)
      const factor = await deleteUserFactor(deps, deps.log, deps.operator, id, factorId)
      printResult(json, factor, `${id} has no longer ${factor.factor_type} ${factor.id}`)
    }),
})

/** Runs `work` on the configured database. */
export async function onUsers(work: (deps: UserAdminDeps, by: CommandDeps) => Promise<void>): Promise<void> {
  await onDatabase(async (command) => {
    const { config, log } = command
    const deps: UserAdminDeps = {
      ...command,
      leakedPasswords: createLeakedPasswords(config.passwords.leaks, log),
      newId: randomUUID,
      passwords: await createPasswords(config.passwords.hashing),
    }
    await work(deps, command)
  })
}

export async function findNamedUser({ db, config }: Pick<UserAdminDeps, 'db' | 'config'>, name: string): Promise<User> {
  const user = UUID.test(name)
    ? await findUserById(db, name)
    : await findUserByAddress(db, addressOf(name), config.jwt.audience)
  if (!user) throw new CommandFailure('there is no such user')
  return user
}

const addressOf = (name: string): Address =>
  name.includes('@') ? { channel: 'email', value: parseEmail(name) } : { channel: 'phone', value: parsePhone(name) }

/** Bound on reading only; the flow refuses passwords that are too long (password-rules.ts). */
const MAX_LINE_BYTES = 16 * 1024

/**
 * Reads the first line of standard input: arguments would be visible in the list of processes and in the shell's
 * history.
 */
export async function readPassword(): Promise<string> {
  const line = await readLine()
  if (!isUtf8(line)) throw new CommandFailure('the password on standard input is not valid UTF-8')
  const password = new TextDecoder().decode(line).replace(/\r$/, '')
  if (password === '') throw new CommandFailure('there is no password on standard input')
  if (password.includes('\0')) throw new CommandFailure('a password must not hold NUL')
  return password
}

async function readLine(): Promise<Buffer> {
  let line = Buffer.alloc(0)
  for await (const chunk of process.stdin) {
    line = Buffer.concat([line, chunk])
    const end = line.indexOf('\n')
    if (end >= 0) return line.subarray(0, end)
    if (line.length > MAX_LINE_BYTES) throw new CommandFailure('the line on standard input is too long for a password')
  }
  return line
}

function isInFuture(duration: string): boolean {
  const now = new Date()
  try {
    const end = bannedUntil(duration, now)
    return end !== null && end > now
  } catch {
    return false
  }
}

function changeNamed(json: boolean, name: string, update: UserUpdate, describe: (user: User) => string) {
  return onUsers(async (deps, { log, operator }) => {
    const { id } = await findNamedUser(deps, name)
    const user = await updateUser(deps, log, operator, id, update)
    await printUser(deps, json, user, describe(user))
  })
}

async function printUser(deps: Pick<CommandDeps, 'config' | 'db' | 'now'>, json: boolean, user: User, text: string) {
  printResult(json, await registeredBody(deps, deps.db, user), text)
}
