import { isUtf8 } from 'node:buffer'
import { CommandFailure, command, printResult, UsageError } from '@services/common/cli'
import { toRegisteredBody } from '../../core/users/user-shape.ts'
import type { User } from '../../core/users/users.store.ts'
import { bannedUntil } from './ban-duration.ts'
import { findNamedUser, OPERATOR, onUsers, USER_OPERAND } from './command-line.ts'
import { createUser } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { updateUser } from './update-user.ts'
import type { UserUpdate } from './user-input.ts'

const PASSWORD_STDIN = { meaning: 'read the password from the first line of standard input' }

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
    await onUsers(async (deps, log) => {
      const user = await createUser(deps, log, OPERATOR, {
        id: options.id,
        email: options.email,
        phone: options.phone,
        role: options.role,
        password: options['password-stdin'] ? await readPassword() : undefined,
        email_confirm: options['email-confirm'],
        phone_confirm: options['phone-confirm'],
      })
      printUser(json, user, `created ${user.id}`)
    })
  },
})

/** `users ban`: sessions stay, but cannot be used. */
export const usersBan = command({
  name: 'users ban',
  summary: 'keep a user out for a time',
  operands: ['USER'],
  options: { for: { value: 'DURATION', meaning: 'from now on, as in 24h or 1h30m; required' } },
  details: USER_OPERAND,
  run: async ({ operands: [name = ''], options: { for: duration = '' }, json }) => {
    if (!isInFuture(duration)) throw new UsageError('--for must be a duration such as 24h or 1h30m')
    await changeNamed(json, name, { ban_duration: duration }, (user) => {
      return `${user.id} is banned until ${user.banned_until?.toISOString()}`
    })
  },
})

export const usersUnban = command({
  name: 'users unban',
  summary: 'lift the ban of a user',
  operands: ['USER'],
  details: USER_OPERAND,
  run: ({ operands: [name = ''], json }) =>
    changeNamed(json, name, { ban_duration: 'none' }, ({ id }) => `${id} is not banned`),
})

export const usersSetPassword = command({
  name: 'users set-password',
  summary: 'set the password of a user and end all their sessions',
  operands: ['USER'],
  options: { 'password-stdin': { meaning: `${PASSWORD_STDIN.meaning}; required` } },
  details: USER_OPERAND,
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
  operands: ['USER'],
  options: {
    soft: { meaning: 'keep the id, and nothing that identifies the user' },
    yes: { meaning: 'required: a deleted user cannot be restored' },
  },
  details: USER_OPERAND,
  run: async ({ operands: [name = ''], options: { soft, yes }, json }) => {
    if (!yes) throw new UsageError('needs --yes: a deleted user cannot be restored')
    await onUsers(async (deps, log) => {
      const { id } = await findNamedUser(deps, name)
      const deletion = soft ? 'soft' : 'hard'
      await deleteUser(deps, log, OPERATOR, id, deletion)
      printResult(json, { id, deletion }, soft ? `deleted ${id} and kept the id` : `deleted ${id}`)
    })
  },
})

/** Bound on reading only; the flow refuses passwords that are too long (password-rules.ts). */
const MAX_LINE_BYTES = 16 * 1024

/** Reads the first line of standard input: arguments would be visible in the list of processes and in the shell's history. */
async function readPassword(): Promise<string> {
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
  return onUsers(async (deps, log) => {
    const { id } = await findNamedUser(deps, name)
    const user = await updateUser(deps, log, OPERATOR, id, update)
    printUser(json, user, describe(user))
  })
}

const printUser = (json: boolean, user: User, text: string) => printResult(json, toRegisteredBody(user), text)
