import { ApiError } from '@services/common/errors'
import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import { pendingAudit } from '../../core/audit/audit.ts'
import type { RefusalLog } from '../../core/audit/sign-in-attempt.ts'
import { withHooksIn } from '../../core/hooks/questions.ts'
import { notify } from '../../core/outbox/notify.ts'
import { makeChallenge, takeChallenge, toChallengeBody } from '../../core/passkeys/challenges.ts'
import { findOwned, noteWarning, type OwnedPasskey } from '../../core/passkeys/passkeys.store.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { isPending } from '../../core/users/proven-addresses.ts'
import { readAgain } from '../../core/users/read-again.ts'
import { lockUser, type User } from '../../core/users/users.store.ts'
import { type Assertion, checkAssertion, isKeyResponse, USER_VERIFICATION } from '../../core/webauthn/ceremony.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { type CeremonyAnswer, malformedCredential, requireAnswer } from './register-passkey.ts'

/** Begins a sign-in. Names no passkey: the browser offers those it has, and nothing reveals an account. */
export function beginSignIn(deps: Deps) {
  const made = makeChallenge(deps, ['authentication'])
  const { challengeSeconds, party } = deps.config.passkeys
  return toChallengeBody(made, {
    challenge: made.challenge.toString('base64url'),
    timeout: challengeSeconds * 1000,
    rpId: party.rpId,
    userVerification: USER_VERIFICATION,
  })
}

export interface PasskeySignIn extends CeremonyAnswer {
  client: Client
  acceptLanguage: string | undefined
}

/**
 * Signs in with a passkey (contract/auth-external.md 8.3). Of all that is wrong with a key one answer reveals nothing.
 */
export async function signInWithPasskey(deps: Deps, log: RefusalLog, given: PasskeySignIn): Promise<SessionBody> {
  const { acceptLanguage } = given
  const { challengeId, credential } = requireAnswer(given)
  const challenge = await takeChallenge(deps, ['authentication'], challengeId)
  if (!isKeyResponse(credential, 'request')) throw malformedCredential()
  const { passkey, user, assertion } = await requireAsserted(deps, challenge, credential)
  requireMaySignIn(deps, user)
  if (isSpent(passkey, assertion)) {
    await warnOfCopy(deps, log, { passkey, user, acceptLanguage })
    throw apiError('webauthn_verification_failed')
  }
  // NIST 800-63B: with the user verified a passkey is two factors. A thief can give a PIN to a key that had none.
  const isTwoFactors = deps.config.passkeys.verifiedIsAal2 && assertion.isUserVerified && passkey.user_verified
  const { id } = passkey
  const audited = pendingAudit(deps, log, {
    action: 'login',
    actor: user,
    traits: { provider: 'passkey', passkey_id: id },
  })
  const use = { id, signCount: assertion.counter, backedUp: assertion.isBackedUp }
  const proof = { identityId: id, aal: isTwoFactors ? 'aal2' : 'aal1', passkey: use } as const
  const currentUser = readAgain(user, (current) => requireMaySignIn(deps, current))
  const session = withHooksIn(
    deps,
    log,
    async (asking, trx) => {
      const current = await currentUser(trx ?? deps.db)
      return startSession(asking, trx ?? deps.db, current, 'passkey', given.client, audited, proof)
    },
    { writesOnce: given.client.device === undefined },
  )
  return session.catch(async (error) => {
    if (!(error instanceof ApiError && error.code === 'invalid_credentials')) throw error
    // The user was banned, another answer with this count came first, or the passkey was removed: that has no copy.
    const left = await findOwned(deps.db, { userId: user.id, credentialId: credential.id })
    if (left) requireMaySignIn(deps, left.user)
    if (left && isSpent(left.passkey, assertion)) await warnOfCopy(deps, log, { ...left, acceptLanguage })
    throw apiError('webauthn_verification_failed')
  })
}

function requireMaySignIn({ now }: Deps, user: User): void {
  if (isPending(user)) throw apiError(user.email ? 'email_not_confirmed' : 'phone_not_confirmed', { status: 403 })
  if (isBanned(user, now())) throw apiError('user_banned')
}

async function requireAsserted(deps: Deps, challenge: Buffer, credential: AuthenticationResponseJSON) {
  const handle: unknown = credential.response.userHandle
  const userId = typeof handle === 'string' ? Buffer.from(handle, 'base64url').toString() : ''
  const found = UUID.test(userId) ? await findOwned(deps.db, { userId, credentialId: credential.id }) : undefined
  if (!found) throw apiError('webauthn_verification_failed')
  const { passkey, user } = found
  const ceremony = { ...deps.config.passkeys.party, challenge: challenge.toString('base64url') }
  // The count is compared here: `isSpent`.
  const key = { id: passkey.credential_id, publicKey: passkey.public_key, counter: 0 }
  const assertion = await checkAssertion(ceremony, key, credential)
  if ('refused' in assertion) throw apiError('webauthn_verification_failed', { cause: assertion.refused })
  if (assertion.isBackupEligible !== passkey.backup_eligible) throw apiError('webauthn_verification_failed')
  return { passkey, user, assertion }
}

/** A count that does not rise shows a copy of the key (WebAuthn 6.1.1). Synced passkeys count nothing and send 0. */
const isSpent = ({ sign_count: stored }: OwnedPasskey, { counter }: Assertion) =>
  Number(stored) !== 0 && counter !== 0 && counter <= Number(stored)

/** Shortest time between two warnings: each further sign-in of the copy would send one. */
const WARN_AGAIN_MS = 24 * 3_600_000

async function warnOfCopy(
  deps: Deps,
  log: RefusalLog,
  { passkey, user, acceptLanguage }: { passkey: OwnedPasskey; user: User; acceptLanguage: string | undefined },
): Promise<void> {
  log.warn({ userId: user.id, passkeyId: passkey.id }, 'passkey refused: its signature count went back')
  const now = deps.now()
  await deps.db.transaction().execute(async (trx) => {
    // The notice refers to the user, whom all flows lock before the passkey.
    if (!(await lockUser(trx, user.id))) return
    if (!(await noteWarning(trx, passkey.id, new Date(now.getTime() - WARN_AGAIN_MS), now))) return
    const details = { Passkey: passkey.friendly_name }
    await notify(deps, trx, user, 'passkey_copied_notification', details, { acceptLanguage })
  })
}
