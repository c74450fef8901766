// Deletes expired rows every ten minutes. The one rule: each kind in small batches that skip locked rows, so no request
// waits for it. Table of rows: contract/auth-platform.md 11.8. Tests: housekeeping.test.ts. Next: db/decoy-
// rows.store.ts and the stores.
import type { Logger } from '@services/common/logger'
import { deleteOldAuditEntries, deleteRefusedSignIns } from './core/audit/audit.store.ts'
import { deleteExpiredChallenges } from './core/factors/challenges.store.ts'
import { deleteStaleFactors } from './core/factors/factors.store.ts'
import { deleteExpiredLimits } from './core/limits/rate-limits.store.ts'
import { deleteExpiredAuthCodes } from './core/one-time-tokens/auth-codes.store.ts'
import { deleteExpiredTokens } from './core/one-time-tokens/one-time-tokens.store.ts'
import { deleteOldMessages, failForgottenMessages } from './core/outbox/messages.store.ts'
import { deleteExpiredSessions, deleteInactiveSessions } from './core/sessions/end-sessions.store.ts'
import { cancelExpiredChanges } from './core/users/addresses.store.ts'
import { deleteIdleAnonymousUsers } from './core/users/anonymous-users.store.ts'
import { deleteExpiredClaims } from './core/users/claims.store.ts'
import { deleteExpiredSendGaps } from './core/verification-messages/send-gaps.store.ts'
import { deleteDecoys } from './db/decoy-rows.store.ts'
import type { Position } from './db/position.ts'
import type { Deps } from './deps.ts'
import { deleteExpiredFlowStates } from './flows/oauth/flow-states.store.ts'

/** Retention of failed messages, for an admin to act. */
const KEEP_FAILED_SECONDS = 30 * 86_400

/** Retention of unproven second factors: long after any enrolment in progress. */
const KEEP_UNVERIFIED_SECONDS = 86_400

/** Retention of expired attempts at providers; until then a late browser learns that its attempt expired. */
const KEEP_ATTEMPT_SECONDS = 600

/** Retention of expired gaps, counters and decoy rows, which strangers create; covers clocks that differ. */
const KEEP_EXPIRED_SECONDS = 600

/** Retention of refused sign-ins if audit entries have none: long enough to investigate an attack. */
const KEEP_REFUSED_SECONDS = 90 * 86_400

const EVERY_MS = 600_000

/** Retention of other expired rows: the token of a mail must outlast a day's wait for the mail server. */
const KEEP_MS = 2 * 86_400_000

/** Rows per statement, so that none runs long. The kinds alternate; the next round resumes unfinished ones. */
const BATCH = 1_000
const MAX_BATCHES = 5_000

/** Deletes expired rows every ten minutes, never twice at once; replicas may run it at the same time. */
export function startHousekeeping(deps: Deps, log: Logger): () => void {
  const walk: Walk = {}
  let isRunning = false
  const round = async () => {
    if (isRunning) return
    isRunning = true
    await deleteExpired(deps, log, walk).finally(() => {
      isRunning = false
    })
  }
  const timer = setInterval(() => void round(), EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Positions at which the next round resumes its search. */
interface Walk {
  sessions?: Position | undefined
  anonymousUsers?: Position | undefined
  refusedSignIns?: Position | undefined
}

export async function deleteExpired(
  { db, now, config }: Deps,
  log: Logger,
  walk: Walk = {},
  maxBatches = MAX_BATCHES,
): Promise<void> {
  const before = new Date(now().getTime() - KEEP_MS)
  const secondsBefore = (seconds?: number) => (seconds ? new Date(before.getTime() - seconds * 1000) : null)
  const sessionLimits = { now: before, startedBefore: secondsBefore(config.sessions.timeboxSeconds) }
  const inactiveSince = secondsBefore(config.sessions.inactivitySeconds)
  const ago = (seconds: number) => new Date(now().getTime() - seconds * 1000)
  const steps: Record<string, () => Promise<number>> = {
    'requested address changes': () => cancelExpiredChanges(db, before, now(), BATCH),
    'one-time tokens': () => deleteExpiredTokens(db, before, BATCH),
    'address claims': () => deleteExpiredClaims(db, now(), BATCH),
    'PKCE codes': () => deleteExpiredAuthCodes(db, before, BATCH),
    'attempts at providers': () => deleteExpiredFlowStates(db, ago(KEEP_ATTEMPT_SECONDS), BATCH),
    'second factor challenges': () => deleteExpiredChallenges(db, before, BATCH),
    'unproven second factors': () => deleteStaleFactors(db, ago(KEEP_UNVERIFIED_SECONDS), BATCH),
    'send gaps': () => deleteExpiredSendGaps(db, ago(KEEP_EXPIRED_SECONDS), BATCH),
    'decoy rows': () => deleteDecoys(db, ago(KEEP_EXPIRED_SECONDS), BATCH),
    limits: () => deleteExpiredLimits(db, ago(KEEP_EXPIRED_SECONDS), BATCH),
    messages: () => deleteOldMessages(db, ['sent', 'dropped'], ago(config.messages.keepSeconds), BATCH),
    'failed messages': () => deleteOldMessages(db, ['failed'], ago(KEEP_FAILED_SECONDS), BATCH),
    'forgotten messages': () => failForgottenMessages(db, before, now(), BATCH),
    'audit entries': async () =>
      config.auditKeepSeconds ? deleteOldAuditEntries(db, ago(config.auditKeepSeconds), BATCH) : 0,
    'refused sign-ins': async () => {
      if (config.auditKeepSeconds) return 0
      const { last, hasMore } = await deleteRefusedSignIns(db, ago(KEEP_REFUSED_SECONDS), walk.refusedSignIns, BATCH)
      // Never restarts: no entry is written with an old time.
      walk.refusedSignIns = last
      return hasMore ? BATCH : 0
    },
    sessions: () => deleteExpiredSessions(db, sessionLimits, BATCH),
    'inactive sessions': async () => {
      if (!inactiveSince) return 0
      walk.sessions = await deleteInactiveSessions(db, inactiveSince, walk.sessions, BATCH)
      return walk.sessions ? BATCH : 0
    },
    'anonymous users': async () => {
      const { anonymous, anonymousMaxIdleSeconds } = config.signup
      if (!anonymous || anonymousMaxIdleSeconds === 0) return 0
      const idleSince = ago(anonymousMaxIdleSeconds)
      const { deleted, next } = await deleteIdleAnonymousUsers(db, idleSince, walk.anonymousUsers, BATCH)
      if (deleted > 0) log.info({ deleted }, 'idle anonymous users deleted')
      walk.anonymousUsers = next
      return next ? BATCH : 0
    },
  }
  const unfinished = new Map(Object.entries(steps))
  for (let i = 0; i < maxBatches && unfinished.size > 0; i++) {
    for (const [what, deleteBatch] of unfinished) {
      try {
        if ((await deleteBatch()) < BATCH) unfinished.delete(what)
      } catch (err) {
        unfinished.delete(what)
        log.warn({ err, what }, 'housekeeping failed: retrying in the next round')
      }
    }
  }
}
