import { randomBytes } from 'node:crypto'
import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { audit } from '../../../core/audit/audit.ts'
import { deriveKey } from '../../../core/keys/derive-key.ts'
import { createEncryption } from '../../../core/keys/encryption.ts'
import { issueToken } from '../../../core/one-time-tokens/one-time-token.ts'
import { requireStrongPassword } from '../../../core/passwords/require-strong-password.ts'
import { endAllSessions } from '../../../core/sessions/end-session.ts'
import { isAdministrator } from '../../../core/users/is-administrator.ts'
import { findRegistrantId } from '../../../core/users/registrants.store.ts'
import { findUserByEmail, lockUser, type User } from '../../../core/users/users.store.ts'
import { LONG_CODE_DIGITS } from '../../../core/verification-messages/code-message.ts'
import { recoveryPageUrl } from '../../../core/verification-messages/link-mail.ts'
import { NIL_UUID } from '../../../db/uuid.ts'
import type { CommandDeps } from '../../../on-database.ts'
import { createUser, type UserAdminDeps } from './create-user.ts'
import { updateUser } from './update-user.ts'
import { onUsers, PASSWORD_STDIN, readPassword } from './user-commands.ts'

/** Time to hand the link over, which a terminal may keep for longer. */
const LINK_SECONDS = 3600

/** `admin create`: administrators come from the machine of the operator. A page would serve the first visitor. */
export const adminCreate = command({
  name: 'admin create',
  summary: 'make an administrator, and a link at which they set their password and second factor',
  options: {
    email: { value: 'ADDRESS', meaning: 'their e-mail address; required' },
    role: { value: 'ROLE', meaning: 'one of AUTH_JWT_ADMIN_ROLES; the first of them if absent' },
    promote: { meaning: 'required for the address of an account that is not an administrator yet' },
    'password-stdin': PASSWORD_STDIN,
  },
  details: [
    'The link works once, within an hour, and is sent to no address. An existing administrator gets a new link.',
    'With --password-stdin the password is set at once, and there is no link.',
    'The role is in app_metadata, so that tokens for applications stay those of an ordinary user.',
    'An account that never proved the address loses it: its password may be that of a stranger.',
  ].join('\n'),
  run: async ({ options: { email: typed, role, promote, 'password-stdin': readsPassword }, json }) => {
    if (!typed) throw new UsageError('needs --email')
    const password = readsPassword ? await readPassword() : undefined
    await onUsers(async (deps, command) => {
      const order = { email: parseEmail(typed), role: adminRole(deps, role), promote: promote === true, password }
      if (!readsPassword) requirePages(deps)
      const admin = await makeAdmin(deps, command, order)
      const made = { id: admin.id, email: admin.email, role: order.role }
      if (readsPassword) return printResult(json, made, `${admin.id} is an administrator with this password`)
      const { link, expiresAt } = await makeLink(command, admin)
      printResult(json, { ...made, link, expires_at: expiresAt.toISOString() }, link)
    })
  },
})

function requirePages({ config }: UserAdminDeps): void {
  if (config.pages.enabled) return
  throw new CommandFailure(
    'the link leads to the hosted pages, which AUTH_HOSTED_PAGES_ENABLED enables; or use --password-stdin',
  )
}

function adminRole({ config: { jwt } }: UserAdminDeps, role = jwt.adminRoles[0] ?? ''): string {
  if (jwt.adminRoles.includes(role)) return role
  throw new UsageError(`--role must be one of AUTH_JWT_ADMIN_ROLES, which are ${jwt.adminRoles.join(', ')}`)
}

interface AdminOrder {
  email: string
  role: string
  promote: boolean
  password: string | undefined
}

/** Creates the user or promotes the account that has proven the address; any other account loses the address. */
async function makeAdmin(deps: UserAdminDeps, { log, operator }: CommandDeps, order: AdminOrder): Promise<User> {
  const { email, role, promote, password } = order
  if (password !== undefined) await requireStrongPassword(deps, password, email)
  const { db, config } = deps
  const audience = config.jwt.audience
  const address = { channel: 'email', value: email } as const
  const isUnproven = await findRegistrantId(db, { address, audience, exceptId: NIL_UUID })
  const known = isUnproven ? undefined : await findUserByEmail(db, email, audience)
  const app_metadata = { role }
  if (!known) return createUser(deps, log, operator, { email, email_confirm: true, app_metadata, password })
  const isAdmin = isAdministrator(config.jwt, known)
  if (!isAdmin && !promote) {
    throw new CommandFailure(`${email} has an account, ${known.id}: --promote makes it an administrator`)
  }
  if (isAdmin && password === undefined) return known
  const changes = { ...(!isAdmin && { app_metadata }), ...(password !== undefined && { password }) }
  const admin = await updateUser(deps, log, operator, known.id, changes)
  // A stolen session of an ordinary user must not become an administrator's.
  if (!isAdmin) await endAllSessions(deps, log, operator, admin)
  return admin
}

/** The link of a recovery with the command's own lifetime. Its code is shown nowhere, and too long to be guessed. */
async function makeLink(command: CommandDeps, admin: User): Promise<{ link: string; expiresAt: Date }> {
  const { config, db, log, now, operator } = command
  const { externalUrl } = config.server
  const codeKey = deriveKey(config.jwt.secret, 'one-time-code')
  const deps = { now, codeKey, random: randomBytes, encryption: createEncryption(config.encryption) }
  const order = { userId: admin.id, purpose: 'recovery', relatesTo: admin.email ?? '' } as const
  const expiresAt = new Date(now().getTime() + LINK_SECONDS * 1000)
  const token = await db.transaction().execute(async (trx) => {
    await lockUser(trx, admin.id)
    const traits = { type: order.purpose }
    await audit(command, trx, log, { action: 'link_generated', actor: operator, target: admin, traits })
    const codeLength = config.mail.codeLength + LONG_CODE_DIGITS
    return issueToken(deps, trx, { ...order, codeLength, lifetimeSeconds: LINK_SECONDS })
  })
  return { link: recoveryPageUrl(externalUrl, token), expiresAt }
}
