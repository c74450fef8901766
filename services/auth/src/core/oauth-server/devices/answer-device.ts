import type { Kysely } from 'kysely'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import { type AuditDeps, type AuditLog, audit } from '../../audit/audit.ts'
import { type UserSession, withLockedCaller } from '../../sessions/caller.ts'
import { addConsent } from '../authorizations/authorizations.store.ts'
import { provenAt, requireOwnFactor } from '../authorizations/demanded-proof.ts'
import { findOAuthClient } from '../oauth-clients.store.ts'
import { answerWaitingDevice, type DeviceCode, findWaitingDevice, isAnsweredBy } from './device-codes.store.ts'

interface Deps extends AuditDeps {
  config: AuditDeps['config'] & Pick<Config, 'jwt' | 'mfa'>
  db: Kysely<DB>
}

/** A device that waits for its user, with the application on it. */
export interface WaitingDevice {
  device: DeviceCode
  client: OAuthClient
}

/** Finds the device of a code that a user entered; undefined for unknown, expired and answered ones alike. */
export async function findDevice(
  { db, now }: Pick<Deps, 'db' | 'now'>,
  userCode: string,
): Promise<WaitingDevice | undefined> {
  const device = await findWaitingDevice(db, { userCode, now: now() })
  const client = device && (await findOAuthClient(db, device.client_id))
  return client && { device, client }
}

/**
 * Stores the user's answer to a device. False when the device does not wait: it has expired, or the answer is another
 * one or another session's. Throws insufficient_scope for sessions of applications.
 */
export const answerDevice = (
  deps: Deps,
  log: AuditLog,
  caller: UserSession,
  { userCode, status }: { userCode: string; status: 'approved' | 'denied' },
): Promise<boolean> =>
  withLockedCaller(deps, caller, async (trx, { user, session }) => {
    if (session.oauth_client_id !== null) throw apiError('insufficient_scope')
    if (status === 'approved') requireOwnFactor(deps, user, session)
    const answered = await answerWaitingDevice(trx, {
      ...{ userCode, status, now: deps.now(), userId: user.id, sessionId: session.id },
      ...{ authenticatedAt: provenAt(session), aal: session.aal },
    })
    // The second of two presses.
    if (!answered) return isAnsweredBy(trx, { userCode, status, sessionId: session.id })
    if (status === 'approved') {
      const { client_id: clientId, scopes, resources } = answered
      await addConsent(trx, { userId: user.id, clientId }, { scopes, resources, now: deps.now() })
    }
    const traits = { client_id: answered.client_id, scope: answered.scopes.join(' ') }
    const action = status === 'approved' ? 'oauth_device_approved' : 'oauth_device_denied'
    await audit(deps, trx, log, { action, actor: user, traits })
    return true
  })
