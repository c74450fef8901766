import type { Selectable, Transaction } from 'kysely'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { type Asking, withHooks } from '../../core/hooks/questions.ts'
import { SEALED } from '../../core/keys/sealed-columns.ts'
import { findAuthCode, type ProviderTokens, takeAuthCode } from '../../core/one-time-tokens/auth-codes.store.ts'
import { hashLinkToken } from '../../core/one-time-tokens/one-time-token.ts'
import { deleteOneTimeTokens } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { isVerifierOf } from '../../core/one-time-tokens/pkce.ts'
import { isRequesterAccepted } from '../../core/sessions/accepted-session.ts'
import { issueTokens, type SessionBody, type SessionDeps } from '../../core/sessions/issue-tokens.ts'
import { lockSession } from '../../core/sessions/sessions.store.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { findUserById, lockUser, type User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

type StoredTokens = Pick<Selectable<DB['auth_codes']>, 'code_hash' | 'provider_tokens'>

interface Exchange {
  authCode: string
  codeVerifier: string
  client: Client
  clientAddress: string | undefined
}

/** Exchanges an auth code (RFC 7636 4.6). A wrong verifier leaves the code valid; the right one uses it up. */
export async function exchangeAuthCode(deps: Deps, log: AuditLog, exchange: Exchange): Promise<SessionBody> {
  const { authCode, codeVerifier, client, clientAddress } = exchange
  if (authCode === '' || codeVerifier === '') {
    throw apiError('validation_failed', {
      message: 'invalid request: both auth code and code verifier should be non-empty',
    })
  }
  const codeHash = hashLinkToken(authCode)
  const found = await findAuthCode(deps.db, codeHash)
  if (!found) throw apiError('flow_state_not_found')
  const now = deps.now()
  if (found.expires_at <= now) throw apiError('flow_state_expired')
  const pkce = { challenge: found.code_challenge, method: found.code_challenge_method }
  if (!isVerifierOf(pkce, codeVerifier)) throw apiError('bad_code_verifier')
  let proven: string | undefined
  const signedIn = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      // The user first, as everywhere: a change of password deletes codes while it holds the user.
      const locked = await lockUser(trx, found.user_id)
      if (!(await takeAuthCode(trx, codeHash))) throw apiError('flow_state_not_found')
      const user = await findUserById(trx, found.user_id)
      const begun = { userId: found.user_id, sessionId: found.session_id }
      if (!user || !(await isRequesterAccepted(deps, trx, begun))) throw apiError('flow_state_not_found')
      if (isBanned(user, now)) throw apiError('user_banned', { status: 400 })
      if (found.hands_over) return handOverSession(asking, trx, user, found)
      const tokens = found.provider_tokens ? openTokens(deps, found) : undefined
      const traits = { provider_type: tokens ? tokens.provider : 'email' }
      const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits })
      const session = await startSession(asking, trx, user, found.authentication_method, client, audited, {
        identityId: tokens?.identityId,
      })
      if (tokens) return { ...session, provider_token: tokens.accessToken, provider_refresh_token: tokens.refreshToken }
      // The link that gave the code left the others valid: a stranger may have requested it.
      await deleteOneTimeTokens(trx, user.id, ['confirmation', 'recovery'])
      if (user.email_confirmed_at && !locked?.email_assumed) proven = `${user.aud}\0${user.email}`
      return session
    }),
  )
  if (proven) await deps.passwordAttempts.markClientKnown({ identifier: proven, address: clientAddress })
  return signedIn
}

/** Issues the tokens of a session that a hosted page began: it has its second factor and its audit entry already. */
async function handOverSession(
  deps: Asking<SessionDeps>,
  trx: Transaction<DB>,
  user: User,
  { session_id: id, authentication_method: method }: Selectable<DB['auth_codes']>,
): Promise<SessionBody> {
  const session = id === null ? undefined : await lockSession(trx, id)
  if (id === null || !session) throw apiError('flow_state_not_found')
  return issueTokens(deps, trx, user, { id, ...session }, method)
}

/** Refuses rather than returning a session without them: a new sign-in has them. */
function openTokens({ encryption }: Deps, found: StoredTokens): ProviderTokens {
  try {
    return encryption.open(SEALED.providerTokens, found)
  } catch (cause) {
    throw apiError('flow_state_not_found', { cause })
  }
}
