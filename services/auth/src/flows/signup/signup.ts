// Signing up by e-mail or phone and password, or anonymously. The answer does not reveal whether an account exists,
// except with autoconfirm, where the specification demands an error. An address that was registered before and never
// confirmed: core/users/address-claims.ts. Tests: here, test/contract/sign-up.test.ts,
// test/registered-first.test.ts.
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { type Asking, type Counted, withHooks } from '../../core/hooks/questions.ts'
import { admitUser, announceUser } from '../../core/identities/admit-user.ts'
import { insertAccount } from '../../core/identities/insert-account.ts'
import { type Account, blankUser, confirmed, newAccount } from '../../core/identities/new-account.ts'
import { registerAddress } from '../../core/identities/register-address.ts'
import type { Pkce } from '../../core/one-time-tokens/pkce.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { Address } from '../../core/users/address.ts'
import { claimOf, claimSalt, recordClaim } from '../../core/users/address-claims.ts'
import { requireModestMetadata } from '../../core/users/metadata.ts'
import { withoutFacts } from '../../core/users/proven-addresses.ts'
import { findUserById, insertUser, type User } from '../../core/users/users.store.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import { withMessagesCounted } from '../../core/verification-messages/message-budget.ts'
import { gapKeyOf, withinGaps } from '../../core/verification-messages/send-gap.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { countSignUp } from '../../metrics.ts'

export interface SignupInput {
  address: Address
  password: string
  data: Metadata
  audience: string
  client: Client
  context: MailContext
  network: string
  trustedNetwork: string | undefined
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
}

export type SignupResult = { session: SessionBody } | { user: User }

/** The caller has checked that sign-ups are open, that the provider is enabled and that the password is strong. */
export async function signUp(deps: Deps, log: AuditLog, input: SignupInput): Promise<SignupResult> {
  requireModestMetadata(input.data, deps.config.signup.dataMaxBytes)
  // Hashed whether or not the account exists, so that time reveals nothing.
  const passwordHash = await deps.passwords.hash(input.password, claimSalt(deps.codeKey, input.address))
  const account = newAccount(deps, input, passwordHash)
  const { mail, sms } = deps.config
  const autoconfirm = input.address.channel === 'email' ? mail.autoconfirm : sms.autoconfirm
  return autoconfirm
    ? signUpConfirmed(deps, log, confirmed(account), input)
    : signUpUnconfirmed(deps, log, account, input)
}

async function signUpConfirmed(deps: Deps, log: AuditLog, account: Account, input: SignupInput) {
  const { user: actor } = account
  const traits = { provider: input.address.channel }
  const session = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      if ((await insertAccount(asking, trx, account)) !== actor.id) {
        await audit(deps, trx, log, { action: 'user_repeated_signup', actor, traits })
        return undefined
      }
      await audit(deps, trx, log, { action: 'user_signedup', actor, traits })
      await audit(deps, trx, log, { action: 'login', actor, traits })
      const created = (await findUserById(trx, actor.id)) as User
      return startSession(asking, trx, created, 'password', input.client)
    }),
  )
  if (!session) throw apiError('user_already_exists')
  countSignUp('password')
  return { session }
}

async function signUpUnconfirmed(deps: Deps, log: AuditLog, account: Account, input: SignupInput) {
  const { user, address } = account
  const claim = claimOf(deps, { ...input, passwordHash: account.passwordHash })
  // Before any refusal: even a refused request of the owner removes a stranger's password.
  await deps.db.transaction().execute((trx) => recordClaim(trx, claim))
  const order = { ...input, isSignUp: true }
  const gap = { kind: gapKind(address), key: gapKeyOf(deps, address, input) } as const
  const counted: Counted = (work) =>
    withinGaps(deps, [gap], () => withMessagesCounted(deps, [{ ...address, network: input.trustedNetwork }], work))
  const register = (asking: Asking<Deps>) =>
    deps.db.transaction().execute((trx) => registerAddress(asking, trx, log, { account, claim, order }))
  const isNew = await withHooks(deps, log, register, counted)
  if (isNew) countSignUp('password')
  // Built only from the request: for an existing account the ids are fresh and name nothing.
  return { user: { ...user, confirmation_sent_at: user.created_at } }
}

const gapKind = ({ channel }: Address) => (channel === 'email' ? 'confirmation' : 'sms')

/**
 * Signs a new user without an address in; they can add one later. The caller has checked that anonymous users are
 * enabled.
 */
export async function signUpAnonymously(
  deps: Deps,
  log: AuditLog,
  { data, audience, client }: Pick<SignupInput, 'data' | 'audience' | 'client'>,
): Promise<SessionBody> {
  if (deps.config.signup.disabled) throw apiError('signup_disabled')
  requireModestMetadata(data, deps.config.signup.dataMaxBytes)
  const blank = blankUser(deps.newId(), audience, deps.config.jwt.defaultRole, deps.now())
  const user = { ...blank, is_anonymous: true, user_metadata: withoutFacts(data) }
  const session = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      await admitUser(asking, trx, user)
      await insertUser(trx, { ...user, password_hash: null })
      announceUser(asking, user.id)
      return startSession(asking, trx, user, 'anonymous', client)
    }),
  )
  countSignUp('anonymous')
  return session
}
