// Signing up by e-mail and password, or anonymously. The one rule: the answer never tells whether an account existed;
// the only exception is autoconfirm, where the specification wants an error. Confirmation: ../verify/.
import type { FastifyBaseLogger } from 'fastify'
import type { Transaction } from 'kysely'
import { audit } from '../audit/audit.ts'
import type { DB, Metadata } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { findUserIdByIdentityEmail, insertIdentity } from '../identities/identities.store.ts'
import { requireStrongPassword } from '../passwords/require-strong-password.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import { blankUser } from '../users/blank-user.ts'
import { parseEmail } from '../users/email-address.ts'
import { findUserByEmail, findUserById, insertUser, type User } from '../users/users.store.ts'
import { sendConfirmation } from './send-confirmation.ts'

export interface SignupInput {
  email: string
  password: string
  data: Metadata
  audience: string
  redirectTo: string
  client: Client
}

export type SignupResult = { session: SessionBody } | { user: User }

export async function signUpByEmail(deps: Deps, log: FastifyBaseLogger, input: SignupInput): Promise<SignupResult> {
  const { config } = deps
  if (config.signup.disabled) throw apiError('signup_disabled')
  requireStrongPassword(input.password, config.passwords)
  if (!config.signup.email) throw apiError('email_provider_disabled')
  const email = parseEmail(input.email)
  // Hashed whether or not the account exists: the time would tell otherwise.
  const passwordHash = await deps.passwords.hash(input.password)
  const account = newAccount(deps, { ...input, email }, passwordHash)
  return config.mail.autoconfirm
    ? signUpConfirmed(deps, log, account, input)
    : signUpUnconfirmed(deps, log, account, input)
}

interface Account {
  user: User & { email: string }
  passwordHash: string | null
}

async function signUpConfirmed(deps: Deps, log: FastifyBaseLogger, account: Account, input: SignupInput) {
  const now = deps.now()
  const user = {
    ...account.user,
    email_confirmed_at: now,
    user_metadata: { ...account.user.user_metadata, email_verified: true },
  }
  const session = await deps.db.transaction().execute(async (trx) => {
    if (!(await insertAccount(deps, trx, { ...account, user }))) {
      await noteRepeatedSignup(deps, trx, log, user)
      return undefined
    }
    await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: 'email' } })
    await audit(deps, trx, log, { action: 'login', actor: user, traits: { provider: 'email' } })
    const created = (await findUserById(trx, user.id)) as User
    return startSession(deps, trx, created, 'password', input.client)
  })
  if (!session) throw apiError('user_already_exists')
  return { session }
}

async function signUpUnconfirmed(deps: Deps, log: FastifyBaseLogger, account: Account, input: SignupInput) {
  await deps.limits.mailSent()
  const { user } = account
  await deps.db.transaction().execute(async (trx) => {
    const isNew = await insertAccount(deps, trx, account)
    const existing = isNew ? undefined : await findUserByEmail(trx, user.email, input.audience)
    const recipient = isNew ? user : existing?.email_confirmed_at ? undefined : existing
    await sendConfirmation(deps, trx, { email: user.email, recipient, redirectTo: input.redirectTo })
    if (recipient) {
      const traits = { provider: 'email' }
      await audit(deps, trx, log, { action: 'user_confirmation_requested', actor: recipient, traits })
    } else await noteRepeatedSignup(deps, trx, log, existing ?? user)
  })
  // Built from the request alone: for an account that exists these ids are made up and name nothing.
  return { user: { ...user, confirmation_sent_at: user.created_at } }
}

const noteRepeatedSignup = (deps: Deps, trx: Transaction<DB>, log: FastifyBaseLogger, actor: User) =>
  audit(deps, trx, log, { action: 'user_repeated_signup', actor, traits: { provider: 'email' } })

/** The user and e-mail identity a sign-up would create. */
function newAccount(deps: Deps, input: SignupInput, passwordHash: string): Account {
  const now = deps.now()
  const id = deps.newId()
  const identityData = { ...input.data, sub: id, email: input.email, email_verified: false, phone_verified: false }
  const user = {
    ...blankUser(id, input.audience, deps.config.jwt.defaultRole, now),
    email: input.email,
    app_metadata: { provider: 'email', providers: ['email'] },
    user_metadata: identityData,
    identities: [
      {
        id: deps.newId(),
        provider_id: id,
        user_id: id,
        identity_data: identityData,
        provider: 'email',
        last_sign_in_at: now.toISOString(),
        created_at: now.toISOString(),
        updated_at: now.toISOString(),
        email: input.email,
      },
    ],
  }
  return { user, passwordHash }
}

/** False when the address belongs to an account already, as its own address or through a linked identity. */
async function insertAccount(deps: Deps, trx: Transaction<DB>, { user, passwordHash }: Account): Promise<boolean> {
  if (await findUserIdByIdentityEmail(trx, user.email, user.aud)) return false
  const { identities, confirmed_at: _generated, ...row } = user
  if (!(await insertUser(trx, { ...row, password_hash: passwordHash }))) return false
  for (const identity of identities) {
    const data = user.email_confirmed_at ? { ...identity.identity_data, email_verified: true } : identity.identity_data
    await insertIdentity(trx, {
      id: identity.id,
      userId: user.id,
      provider: identity.provider,
      providerId: identity.provider_id,
      data,
      now: deps.now(),
    })
  }
  return true
}
