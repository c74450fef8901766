import type { FastifyBaseLogger } from 'fastify'
import { audit } from '../audit/audit.ts'
import type { Metadata } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { hashCode, isSameHash, MAX_ATTEMPTS } from '../one-time-tokens/one-time-token.ts'
import { countAttempt, deleteOneTimeTokens, takeByCodeHash } from '../one-time-tokens/one-time-tokens.store.ts'
import { requireStrongPassword } from '../passwords/require-strong-password.ts'
import type { Caller } from '../sessions/caller.ts'
import { endSessions, lockSession } from '../sessions/sessions.store.ts'
import { requireModestMetadata } from '../users/metadata.ts'
import {
  findPasswordHash,
  findUserById,
  lockUser,
  mergeAppMetadata,
  mergeUserMetadata,
  setPassword,
  touchUser,
  type User,
} from '../users/users.store.ts'

export interface AccountChanges {
  password?: string | undefined
  nonce?: string | undefined
  data?: Metadata | undefined
  appMetadata?: Metadata | undefined
}

/** What a user changes about themselves. A new password ends every other session and every open one-time token. */
export async function updateAccount(
  deps: Deps,
  log: FastifyBaseLogger,
  { user, session }: Caller & { session: { id: string } },
  changes: AccountChanges,
): Promise<User> {
  const { config, db } = deps
  if (changes.appMetadata && user.role !== config.jwt.adminGroup) throw apiError('not_admin')
  const checked = changes.password === undefined ? undefined : await checkNewPassword(deps, user, changes)
  return db.transaction().execute(async (trx) => {
    const now = deps.now()
    await lockUser(trx, user.id)
    // Hashing took its time: the session may have been ended meanwhile, by its owner's own password change.
    if (!(await lockSession(trx, session.id))) throw apiError('session_not_found')
    if (checked) {
      const { passwordHash, nonceHash } = checked
      if (nonceHash && !(await takeByCodeHash(trx, user.id, 'reauthentication', nonceHash))) {
        throw apiError('reauthentication_not_valid')
      }
      await setPassword(trx, user.id, passwordHash, now)
      await deleteOneTimeTokens(trx, user.id)
      await endSessions(trx, user.id, 'others', session.id)
      await audit(deps, trx, log, { action: 'user_updated_password', actor: user })
    }
    if (changes.data) await mergeUserMetadata(trx, user.id, changes.data, now)
    if (changes.appMetadata) await mergeAppMetadata(trx, user.id, changes.appMetadata, now)
    await touchUser(trx, user.id, now)
    await audit(deps, trx, log, { action: 'user_modified', actor: user })
    const updated = await findUserById(trx, user.id)
    if (!updated) throw apiError('user_not_found')
    requireModestMetadata(updated.user_metadata)
    requireModestMetadata(updated.app_metadata)
    return updated
  })
}

/** Checks strength, nonce and novelty of the new password, in this order. The nonce is used up with the change itself. */
async function checkNewPassword(deps: Deps, user: User, { password = '', nonce }: AccountChanges) {
  const { config, db, passwords } = deps
  if (password === '') throw apiError('weak_password', { details: { weak_password: { reasons: ['length'] } } })
  await requireStrongPassword(deps, password)
  if (user.is_anonymous) {
    throw apiError('validation_failed', {
      status: 422,
      message: 'Updating password of an anonymous user without an email or phone is not allowed',
    })
  }
  const nonceHash = config.passwords.requireReauthentication ? await checkNonce(deps, user, nonce) : undefined
  const current = await findPasswordHash(db, user.id)
  if (current && (await passwords.verify(current, password))) throw apiError('same_password')
  return { passwordHash: await passwords.hash(password), nonceHash }
}

async function checkNonce(deps: Deps, user: User, nonce: string | undefined): Promise<Buffer> {
  if (!nonce) throw apiError('reauthentication_needed')
  const [token] = await countAttempt(deps.db, user.id, ['reauthentication'], MAX_ATTEMPTS)
  const matches =
    token?.code_hash && isSameHash(token.code_hash, hashCode(deps.codeKey, token.purpose, token.relates_to, nonce))
  if (!token?.code_hash || !matches || token.expires_at <= deps.now()) throw apiError('reauthentication_not_valid')
  return token.code_hash
}
