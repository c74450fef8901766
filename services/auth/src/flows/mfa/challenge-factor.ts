import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { insertChallenge, type NewChallenge } from '../../core/factors/challenges.store.ts'
import { changeFactor, type Factor } from '../../core/factors/factors.store.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { withLockedCaller } from '../../core/sessions/locked-caller.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB, FactorType } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { Open } from './challenge-parts.ts'
import { requireVerifyEnabled } from './factor-switches.ts'
import { requireFactor, requireMayProve } from './find-factor.ts'
import { sendPhoneCode } from './phone-challenge.ts'
import { challengeKey, type KeyChallenge } from './webauthn-challenge.ts'

export interface ChallengeOrder {
  factorId: string
  /** Delivery of a code to a phone; SMS by default. */
  channel: string | undefined
  /** Relying party for a security key. */
  webauthn: unknown
  /** Client IP address. */
  ip: string | null
}

export interface OpenChallenge {
  id: string
  type: FactorType
  /** Unix seconds. */
  expires_at: number
  webauthn?: KeyChallenge
}

/** Opens a challenge to a factor (contract/auth-external.md 4.3). */
export async function challengeFactor(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  order: ChallengeOrder,
): Promise<OpenChallenge> {
  const factor = await requireFactor(deps.db, caller.user, order.factorId)
  requireVerifyEnabled(deps.config.mfa, factor.factor_type)
  requireMayProve(deps, caller.user, caller.session, factor)
  await deps.limits.factorTry(factor.id, caller.session.id)
  const id = deps.newId()
  const expiresAt = new Date(deps.now().getTime() + deps.config.mfa.challengeSeconds * 1000)
  const open: Open = ({ whenOpen, ...parts }) =>
    withLockedCaller(deps, caller, async (trx, { user, session }) => {
      const current = await requireFactor(trx, user, factor.id)
      requireMayProve(deps, user, session, current)
      const challenge = { ...parts, id, factorId: factor.id, ip: order.ip, expiresAt, now: deps.now() }
      await openChallenge(deps, trx, log, user, current, challenge)
      await whenOpen?.(trx)
    })
  const opened = { id, type: factor.factor_type, expires_at: Math.floor(expiresAt.getTime() / 1000) }
  switch (factor.factor_type) {
    case 'totp':
      await open({})
      return opened
    case 'phone':
      await sendPhoneCode(deps, caller, factor, { ...order, challengeId: id }, open)
      return opened
    case 'webauthn':
      return { ...opened, webauthn: await challengeKey(deps, caller, factor, order.webauthn, open) }
  }
}

/** Stores a challenge and notes it on the factor, with the user locked. */
async function openChallenge(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  user: User,
  factor: Factor,
  challenge: NewChallenge,
): Promise<void> {
  await insertChallenge(trx, challenge)
  await changeFactor(trx, factor, { last_challenged_at: challenge.now }, challenge.now)
  const traits = { factor_id: factor.id, factor_type: factor.factor_type, challenge_id: challenge.id }
  await audit(deps, trx, log, { action: 'challenge_created', actor: user, traits })
}
