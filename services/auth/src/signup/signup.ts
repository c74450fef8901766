// Signing up by e-mail and password, or anonymously. The one rule: the answer never tells whether an account existed;
// the only exception is autoconfirm, where the specification wants an error. Confirmation: ../verify/.
import type { FastifyBaseLogger } from 'fastify'
import type { Transaction } from 'kysely'
import { audit } from '../audit/audit.ts'
import type { DB, Metadata } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { findUserIdByIdentityEmail, insertIdentity } from '../identities/identities.store.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import { blankUser } from '../users/blank-user.ts'
import { parseEmail } from '../users/email-address.ts'
import { requireModestMetadata } from '../users/metadata.ts'
import { findUserByEmail, findUserById, insertUser, lockUser, type User } from '../users/users.store.ts'
import { refuseWithinGap, sendConfirmation } from './send-confirmation.ts'

export interface SignupInput {
  email: string
  password: string
  data: Metadata
  audience: string
  redirectTo: string
  /** The header, for the language of the mail. */
  acceptLanguage: string | undefined
  client: Client
}

export type SignupResult = { session: SessionBody } | { user: User }

/** The caller has checked that sign-ups are open and the password is strong. */
export async function signUpByEmail(deps: Deps, log: FastifyBaseLogger, input: SignupInput): Promise<SignupResult> {
  const { config } = deps
  if (!config.signup.email) throw apiError('email_provider_disabled')
  const email = parseEmail(input.email)
  requireModestMetadata(input.data)
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
    if ((await insertAccount(deps, trx, { ...account, user })) !== user.id) {
      await audit(deps, trx, log, { action: 'user_repeated_signup', actor: user, traits: { provider: 'email' } })
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
  const { user } = account
  // Looked at before the budget of all users is touched, or repeating one address would use it up.
  await refuseWithinGap(deps, user.email)
  await deps.limits.mailSent()
  await deps.db.transaction().execute(async (trx) => {
    const holderId = await insertAccount(deps, trx, account)
    const holder = holderId === user.id ? user : await lockHolder(trx, holderId)
    const isPending = holder.email === user.email && !holder.email_confirmed_at
    const { redirectTo, acceptLanguage } = input
    await sendConfirmation(deps, trx, { email: user.email, holder, isPending, redirectTo, acceptLanguage })
    const action = isPending ? 'user_confirmation_requested' : 'user_repeated_signup'
    await audit(deps, trx, log, { action, actor: holder, traits: { provider: 'email' } })
  })
  // Built from the request alone: for an account that exists these ids are made up and name nothing.
  return { user: { ...user, confirmation_sent_at: user.created_at } }
}

async function lockHolder(trx: Transaction<DB>, id: string): Promise<User> {
  await lockUser(trx, id)
  const holder = await findUserById(trx, id)
  return holder ?? unavailable()
}

/** The account that had the address was deleted in this very moment; the next try finds it free. */
function unavailable(): never {
  throw apiError('service_unavailable', { retryAfterSeconds: 1 })
}

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

/** Whose address it is now: the new user's, or that of the account that has it, as its own or through an identity. */
async function insertAccount(deps: Deps, trx: Transaction<DB>, { user, passwordHash }: Account): Promise<string> {
  const linked = await findUserIdByIdentityEmail(trx, user.email, user.aud)
  if (linked) return linked
  const { identities, confirmed_at: _generated, ...row } = user
  if (!(await insertUser(trx, { ...row, password_hash: passwordHash }))) {
    return (await findUserByEmail(trx, user.email, user.aud))?.id ?? unavailable()
  }
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
  return user.id
}
