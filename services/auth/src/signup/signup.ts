// Signing up by e-mail or phone and password. The one rule: the answer never tells whether an account existed; the only
// exception is autoconfirm, where the specification wants an error. Confirmation: ../verify/.
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { Pkce } from '../auth-codes/pkce.ts'
import type { DB, Metadata } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { countSignUp } from '../metrics.ts'
import { sendConfirmation } from '../one-time-messages/confirmation.ts'
import type { MailContext } from '../one-time-messages/link-mail.ts'
import { withMessagesCounted } from '../one-time-messages/message-budget.ts'
import { withinGaps } from '../one-time-messages/send-gap.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import type { SmsChannel } from '../sms/gateway.ts'
import type { Address } from '../users/address.ts'
import { requireModestMetadata } from '../users/metadata.ts'
import { type Account, confirmed, insertAccount, newAccount, refuseVanishedAccount } from '../users/new-account.ts'
import {
  findUserByAddress,
  findUserById,
  lockAndReadUser,
  type User,
  type UserWithPassword,
} from '../users/users.store.ts'

export interface SignupInput {
  address: Address
  password: string
  data: Metadata
  audience: string
  client: Client
  context: MailContext
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
}

export type SignupResult = { session: SessionBody } | { user: User }

/** The caller has checked that sign-ups are open, that the provider is on and that the password is strong. */
export async function signUp(deps: Deps, log: AuditLog, input: SignupInput): Promise<SignupResult> {
  requireModestMetadata(input.data)
  // Hashed whether or not the account exists: the time would tell otherwise.
  const known = await findUserByAddress(deps.db, input.address, input.audience)
  const account = newAccount(deps, input, await deps.passwords.hash(input.password, known?.password_hash))
  const { mail, sms } = deps.config
  const autoconfirm = input.address.channel === 'email' ? mail.autoconfirm : sms.autoconfirm
  return autoconfirm
    ? signUpConfirmed(deps, log, confirmed(account), input)
    : signUpUnconfirmed(deps, log, account, input)
}

async function signUpConfirmed(deps: Deps, log: AuditLog, account: Account, input: SignupInput) {
  const { user: actor } = account
  const traits = { provider: input.address.channel }
  const session = await deps.db.transaction().execute(async (trx) => {
    if ((await insertAccount(deps, trx, account)) !== actor.id) {
      await audit(deps, trx, log, { action: 'user_repeated_signup', actor, traits })
      return undefined
    }
    await audit(deps, trx, log, { action: 'user_signedup', actor, traits })
    await audit(deps, trx, log, { action: 'login', actor, traits })
    const created = (await findUserById(trx, actor.id)) as User
    return startSession(deps, trx, created, 'password', input.client)
  })
  if (!session) throw apiError('user_already_exists')
  countSignUp('password')
  return { session }
}

async function signUpUnconfirmed(deps: Deps, log: AuditLog, account: Account, input: SignupInput) {
  const { user, address } = account
  const work = () =>
    deps.db.transaction().execute(async (trx) => {
      const holderId = await insertAccount(deps, trx, account)
      const holder = holderId === user.id ? { ...user, password_hash: null } : await lockHolder(trx, holderId)
      // Two passwords for one address: one of them may be a stranger's, and nothing in the mail could tell which. Then whoever
      // proves the address gets none and chooses one.
      const passwordHash =
        holderId === user.id || holder.password_hash === account.passwordHash ? account.passwordHash : null
      const { isPending } = await sendConfirmation(deps, trx, holder, { ...input, passwordHash })
      const action = isPending ? 'user_confirmation_requested' : 'user_repeated_signup'
      await audit(deps, trx, log, { action, actor: holder, traits: { provider: address.channel } })
      return holderId === user.id
    })
  const isNew = await withinGaps(deps, [{ kind: gapKind(address), key: address.value }], () =>
    withMessagesCounted(deps, [address], work),
  )
  if (isNew) countSignUp('password')
  // Built from the request alone: for an account that exists these ids are made up and name nothing.
  return { user: { ...user, confirmation_sent_at: user.created_at } }
}

const gapKind = ({ channel }: Address) => (channel === 'email' ? 'confirmation' : 'sms')

const lockHolder = async (trx: Transaction<DB>, id: string): Promise<UserWithPassword> =>
  (await lockAndReadUser(trx, id)) ?? refuseVanishedAccount()
