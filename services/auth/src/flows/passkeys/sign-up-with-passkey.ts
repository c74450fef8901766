import { type AuditLog, audit, pendingAudit } from '../../core/audit/audit.ts'
import { hookBehind } from '../../core/hooks/hooks.ts'
import { withHooks } from '../../core/hooks/questions.ts'
import { admitUser, announceUser } from '../../core/identities/admit-user.ts'
import { blankUser } from '../../core/identities/new-account.ts'
import { isChangeSent, type RequestedEmail } from '../../core/identities/request-email.ts'
import type { Pkce } from '../../core/one-time-tokens/pkce.ts'
import { makeChallenge, takeChallenge, toChallengeBody, userOfSignUp } from '../../core/passkeys/challenges.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { requireModestMetadata } from '../../core/users/metadata.ts'
import { withoutFacts } from '../../core/users/proven-addresses.ts'
import { insertUser } from '../../core/users/users.store.ts'
import { beginEmailChange } from '../../core/verification-messages/address-change.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import { creationOptions } from '../../core/webauthn/ceremony.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countSignUp } from '../../metrics.ts'
import {
  type CeremonyAnswer,
  nameIn,
  ownerFrom,
  requireAnswer,
  requireNewKey,
  storePasskey,
} from './register-passkey.ts'

interface PasskeySignUp {
  /** Lower case. */
  email: string | undefined
  data: Metadata
}

/** Begins a sign-up: the account does not exist before its passkey, whose user handle is the account's id. */
export async function beginSignUp(deps: Deps, { email, data }: PasskeySignUp) {
  requireModestMetadata(data, deps.config.signup.dataMaxBytes)
  const made = makeChallenge(deps, ['signup'])
  const { challengeSeconds, party } = deps.config.passkeys
  const { id, challenge } = made
  const question = { ...party, challenge, timeoutSeconds: challengeSeconds, residentKey: 'required' } as const
  const userId = userOfSignUp(deps, id)
  const owner = ownerFrom(userId, email ?? nameIn(data) ?? userId, data)
  const { excludeCredentials: _none, ...options } = await creationOptions(question, owner, [])
  return toChallengeBody(made, options)
}

interface CompletedSignUp extends PasskeySignUp, CeremonyAnswer {
  audience: string
  client: Client
  context: MailContext
  pkce: Pkce | undefined
}

/**
 * Creates an account with its passkey and signs it in. An address is only requested: its owner adds it by a link, and
 * no answer reveals whether another account has it.
 */
export async function signUpWithPasskey(deps: Deps, log: AuditLog, given: CompletedSignUp): Promise<SessionBody> {
  const { email, data, client, context, pkce } = given
  requireModestMetadata(data, deps.config.signup.dataMaxBytes)
  const { challengeId, credential } = requireAnswer(given)
  const key = await requireNewKey(deps, await takeChallenge(deps, ['signup'], challengeId), credential)
  const now = deps.now()
  const user = {
    ...blankUser(userOfSignUp(deps, challengeId), given.audience, deps.config.jwt.defaultRole, now),
    app_metadata: { provider: 'passkey', providers: ['passkey'] },
    user_metadata: withoutFacts(data),
  }
  const isTwoFactors = deps.config.passkeys.verifiedIsAal2 && key.isUserVerified
  const session = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      const requesting = { ...user, email_change: email ?? null }
      await admitUser(asking, trx, requesting)
      await insertUser(trx, { ...user, password_hash: null })
      announceUser(asking, user.id)
      const { id } = await storePasskey(asking, trx, user.id, key)
      await audit(deps, trx, log, { action: 'user_signedup', actor: user, traits: { provider: 'passkey' } })
      await audit(deps, trx, log, { action: 'passkey_created', actor: user, traits: { passkey_id: id } })
      const traits = { provider: 'passkey', passkey_id: id }
      const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits })
      const proof = { identityId: id, aal: isTwoFactors ? 'aal2' : 'aal1' } as const
      if (email) await beginEmailChange(deps, trx, user, email, null)
      return startSession(asking, trx, requesting, 'passkey', client, audited, proof)
    }),
  )
  countSignUp('passkey')
  if (email) await requestAddress(deps, log, { userId: user.id, email, context, sessionId: null, pkce })
  return session
}

/** Sends the link of the address. A hook that refuses it does not end the sign-up: the account exists already. */
async function requestAddress(deps: Deps, log: AuditLog, requested: RequestedEmail): Promise<void> {
  try {
    await isChangeSent(deps, requested)
  } catch (error) {
    if (!hookBehind(error)) throw error
    log.warn({ userId: requested.userId, err: error }, 'no link for the address of a sign-up: refused by the hook')
  }
}
