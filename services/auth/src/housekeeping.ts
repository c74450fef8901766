// Deletes expired rows every ten minutes. Each kind in small batches that skip locked rows, so no request waits for it.
// Table of rows: contract/auth-platform.md 11.8.
import { repeatBatch } from '@services/common/housekeeping/delete-in-batches'
import { type Kinds, type Runs, runRound, startRounds } from '@services/common/housekeeping/rounds'
import type { Logger } from '@services/common/telemetry/logger'
import { settingsToRenew } from './config/faults.ts'
import { deleteOldAuditEntries, deleteRefusedSignIns } from './core/audit/audit.store.ts'
import { eraseDeletedUsers, eraseRefusedSignIns } from './core/audit/erase-entries.store.ts'
import { deleteExpiredChallenges } from './core/factors/challenges.store.ts'
import { deleteStaleFactors } from './core/factors/factors.store.ts'
import { deleteOldHookFailures } from './core/hooks/hook-failures.store.ts'
import { deleteExpiredLimits } from './core/limits/rate-limits.store.ts'
import { deleteExpiredRequests, deleteOldNotices } from './core/oauth-server/expired-requests.store.ts'
import { deleteForgotten } from './core/oauth-server/registrations.store.ts'
import { deleteExpiredAuthCodes } from './core/one-time-tokens/auth-codes.store.ts'
import { deleteExpiredTokens } from './core/one-time-tokens/one-time-tokens.store.ts'
import { deleteOldMessages, failForgottenMessages } from './core/outbox/messages.store.ts'
import { reportFailed } from './core/outbox/report-failed.ts'
import { deleteExpiredUses as deleteUsedChallenges } from './core/passkeys/used-challenges.store.ts'
import { deleteEndedSessions, deleteIdleSessions } from './core/sessions/end-sessions.store.ts'
import { deleteOldDays, foldHours } from './core/statistics/counts.store.ts'
import { beginOf, DAY_MS } from './core/statistics/statistics.ts'
import { deleteExpiredDevices } from './core/trusted-devices/trusted-devices.store.ts'
import { deleteExpiredClaims } from './core/users/address-claims.store.ts'
import { cancelExpiredChanges } from './core/users/addresses.store.ts'
import { deleteIdleAnonymousUsers } from './core/users/anonymous-users.store.ts'
import { deleteExpiredSendGaps } from './core/verification-messages/send-gaps.store.ts'
import { deleteExpiredUses } from './core/web3/used-messages.store.ts'
import {
  deleteOldDeliveries,
  deleteOldEventUsers,
  deleteOrphans,
  failUnwanted,
} from './core/webhooks/unwanted-deliveries.store.ts'
import { deleteUnset } from './core/webhooks/webhooks.store.ts'
import { deleteDecoys } from './db/decoy-rows.store.ts'
import { eraseEventsOfDeleted } from './db/erased-events.store.ts'
import { TRY_FOR_MS } from './db/events.store.ts'
import { claimRun, isRunDue, setDue } from './db/shared-runs.store.ts'
import type { Deps } from './deps.ts'
import { deleteExpiredFlowStates } from './flows/oauth/flow-states.store.ts'

/** Retention of failed messages and of failures of hooks, for an admin to act. */
const KEEP_FAILED_SECONDS = 30 * 86_400

/** Retention of unproven second factors: long after any enrolment in progress. */
const KEEP_UNVERIFIED_SECONDS = 86_400

/** Retention of expired attempts at providers; until then a late browser learns that its attempt expired. */
const KEEP_ATTEMPT_SECONDS = 600

/** Retention of expired gaps, counters and decoy rows, which strangers create; covers clocks that differ. */
const KEEP_EXPIRED_SECONDS = 600

/** Retention of refused sign-ins if audit entries have none: long enough to investigate an attack. */
const KEEP_REFUSED_SECONDS = 90 * 86_400

/** Age of hours that become part of their day: past the last 24 hours, and the writing of an earlier one. */
const FOLD_AFTER_SECONDS = 2 * 86_400

/** Retention of daily statistics: 13 months, so that a month can be compared with the one a year before. */
const KEEP_DAYS_SECONDS = 396 * 86_400

/** Retention of clients that registered themselves, from their latest tokens. */
const KEEP_CLIENT_SECONDS = 30 * 86_400

const EVERY_MS = 600_000

/**
 * Longest interval of searches that read every old row, also those that stay; shorter limits are searched for as often.
 */
const SEARCH_EVERY_SECONDS = 86_400

/** Interval of the search for events of deleted users, which reads a row of each user that has events. */
const ERASE_EVERY_MS = 3_600_000

/** Time without a sign of life after which another process takes over such a search. */
const TAKEN_OVER_MS = 3_600_000

/** Retention of other expired rows: the token of a mail must outlast a day's wait for the mail server. */
const KEEP_SECONDS = 2 * 86_400

/** Deletes expired rows every ten minutes, never twice at once; replicas may run it at the same time. */
export function startHousekeeping(deps: Deps, log: Logger): () => Promise<void> {
  const runs: Runs = {}
  const round = (stopping: AbortSignal) => deleteExpired(deps, log, runs, stopping)
  return startRounds(round, { log, firstMs: EVERY_MS, everyMs: EVERY_MS })
}

/** Runs one round, until all is deleted or `stopping` aborts. Kinds that it did not finish continue in the next one. */
export const deleteExpired = (deps: Deps, log: Logger, runs: Runs = {}, stopping?: AbortSignal): Promise<void> =>
  runRound(kindsOf(deps, log), { log, now: deps.now, everyMs: EVERY_MS, runs, stopping })

function kindsOf(deps: Deps, log: Logger): Kinds {
  const { db, now, config } = deps
  const ago = (seconds: number) => new Date(now().getTime() - seconds * 1000)
  const { auditKeepSeconds, messages, sessions, webhooks } = config
  const { timeboxSeconds } = sessions
  const { anonymous, anonymousMaxIdleSeconds } = config.signup
  const idleSeconds = longestIdle(sessions)
  return {
    'one-time tokens': { begin: () => deleteTokens(db, ago(KEEP_SECONDS), now) },
    'address claims': { begin: () => deleteExpiredClaims(db, now()) },
    'PKCE codes': { begin: () => deleteExpiredAuthCodes(db, ago(KEEP_SECONDS)) },
    'attempts at providers': { begin: () => deleteExpiredFlowStates(db, ago(KEEP_ATTEMPT_SECONDS)) },
    'forgotten clients': {
      begin: () => repeatBatch((limit) => deleteForgotten(db, ago(KEEP_CLIENT_SECONDS), limit)),
    },
    'second factor challenges': { begin: () => deleteExpiredChallenges(db, ago(KEEP_SECONDS)) },
    'unproven second factors': {
      begin: () => repeatBatch((limit) => deleteStaleFactors(db, ago(KEEP_UNVERIFIED_SECONDS), limit)),
    },
    'trusted devices': { begin: () => deleteExpiredDevices(db, now()) },
    'send gaps': { begin: () => deleteExpiredSendGaps(db, ago(KEEP_EXPIRED_SECONDS)) },
    'decoy rows': { begin: () => deleteDecoys(db, ago(KEEP_EXPIRED_SECONDS)) },
    'used wallet messages': { begin: () => deleteExpiredUses(db, ago(KEEP_EXPIRED_SECONDS)) },
    'used passkey challenges': { begin: () => deleteUsedChallenges(db, ago(KEEP_EXPIRED_SECONDS)) },
    'requests of applications': {
      begin: () => deleteExpiredRequests(db, 'oauth_authorizations', ago(KEEP_SECONDS)),
    },
    'requests of devices': { begin: () => deleteExpiredRequests(db, 'oauth_device_codes', ago(KEEP_SECONDS)) },
    'used proofs of applications': {
      begin: () => deleteExpiredRequests(db, 'used_oauth_proofs', ago(KEEP_EXPIRED_SECONDS)),
    },
    'notices of ended sessions': { begin: () => deleteOldNotices(db, ago(KEEP_SECONDS)) },
    limits: { begin: () => deleteExpiredLimits(db, ago(KEEP_EXPIRED_SECONDS)) },
    'sent messages': { begin: () => deleteOldMessages(db, 'sent', ago(messages.keepSeconds)) },
    'dropped messages': { begin: () => deleteOldMessages(db, 'dropped', ago(messages.keepSeconds)) },
    'failed messages': { begin: () => deleteOldMessages(db, 'failed', ago(KEEP_FAILED_SECONDS)) },
    'forgotten messages': {
      begin: () => repeatBatch((limit) => failForgotten(db, ago(KEEP_SECONDS), now(), limit)),
    },
    'given up events': { begin: () => repeatBatch((limit) => failUnwanted(db, now(), limit)) },
    'events of deleted users': {
      begin: () => byOneProcess(deps, 'events of deleted users', ERASE_EVERY_MS, () => eraseEventsOfDeleted(db)),
    },
    'old events': { begin: () => deleteOldDeliveries(db, ago(webhooks.keepSeconds)) },
    'users of old events': { begin: () => deleteOldEventUsers(db, ago(webhooks.keepSeconds)) },
    'webhook without settings': { begin: () => deleteUnset(db, ago(TRY_FOR_MS / 1000)) },
    'failures of hooks': { begin: () => deleteOldHookFailures(db, ago(KEEP_FAILED_SECONDS)) },
    'events for deleted webhooks': { begin: () => deleteOrphans(db) },
    ...(auditKeepSeconds
      ? { 'audit entries': { begin: () => deleteOldAuditEntries(db, ago(auditKeepSeconds)) } }
      : { 'refused sign-ins': { begin: (from) => deleteRefusedSignIns(db, ago(KEEP_REFUSED_SECONDS), from) } }),
    ...erasures(deps, log, ago),
    'settings to renew': { everyMs: DAY_MS, begin: () => warnOfExpiry(config, now(), log) },
    // Also without the console: another process may count, and counts outlive the setting.
    'hourly statistics': {
      begin: () => repeatBatch((limit) => foldHours(db, beginOf(DAY_MS, ago(FOLD_AFTER_SECONDS)), limit)),
    },
    'daily statistics': { begin: () => deleteOldDays(db, ago(KEEP_DAYS_SECONDS)) },
    'sessions with an end': { begin: () => deleteEndedSessions(db, 'not_after', ago(KEEP_SECONDS)) },
    ...(timeboxSeconds && {
      'sessions past their time box': {
        begin: () => deleteEndedSessions(db, 'created_at', ago(KEEP_SECONDS + timeboxSeconds)),
      },
    }),
    ...(idleSeconds && {
      'idle sessions': {
        begin: () =>
          byOneProcess(deps, 'idle sessions', searchEveryMs(idleSeconds), () =>
            deleteIdleSessions(db, ago(idleSeconds), sessions),
          ),
      },
    }),
    ...(anonymous &&
      anonymousMaxIdleSeconds && {
        'anonymous users': {
          begin: () =>
            byOneProcess(deps, 'anonymous users', searchEveryMs(anonymousMaxIdleSeconds), () => {
              const batches = deleteIdleAnonymousUsers(db, ago(anonymousMaxIdleSeconds))
              return logged(batches, (deleted) => log.info({ deleted }, 'idle anonymous users deleted'))
            }),
        },
      }),
  }
}

const searchEveryMs = (limitSeconds: number) => Math.min(limitSeconds, SEARCH_EVERY_SECONDS) * 1000

/**
 * Runs a search that reads every old row by one process for all, and again `everyMs` after its begin. The claim is
 * renewed while the search goes on; one that fails is due at once.
 */
async function* byOneProcess(
  { db, now }: Deps,
  kind: string,
  everyMs: number,
  search: () => AsyncGenerator<void, void>,
): AsyncGenerator<void, void> {
  const began = now()
  const heldMs = Math.min(everyMs, TAKEN_OVER_MS)
  const until = () => new Date(now().getTime() + heldMs)
  if (!(await isRunDue(db, kind, began)) || !(await claimRun(db, kind, { now: began, until: until() }))) return
  let heldAt = began.getTime()
  try {
    for await (const step of search()) {
      if (now().getTime() >= heldAt + heldMs / 2) {
        heldAt = now().getTime()
        await setDue(db, kind, until())
      }
      yield step
    }
  } catch (error) {
    await setDue(db, kind, now())
    throw error
  }
  await setDue(db, kind, new Date(began.getTime() + everyMs))
}

/** Cancels requested changes of address before the tokens go that show when they expired. */
async function* deleteTokens(db: Deps['db'], before: Date, now: Deps['now']): AsyncGenerator<void, void> {
  yield* repeatBatch((limit) => cancelExpiredChanges(db, before, now(), limit))
  yield* deleteExpiredTokens(db, before)
}

const failForgotten = (db: Deps['db'], before: Date, now: Date, limit: number): Promise<number> =>
  db.transaction().execute(async (trx) => {
    const failed = await failForgottenMessages(trx, before, now, limit)
    for (const message of failed) await reportFailed(trx, message)
    return failed.length
  })

/** Logs again each day what the log of a start said, which may be months ago. */
async function* warnOfExpiry(config: Deps['config'], now: Date, log: Logger): AsyncGenerator<void, void> {
  for (const setting of settingsToRenew(config, now)) {
    log.warn({ setting }, 'setting expires soon')
    yield
  }
}

/** Returns the time without a refresh after which a session is deleted: it has ended, or may be forgotten. */
function longestIdle({ inactivitySeconds, keepIdleSeconds }: Deps['config']['sessions']): number | undefined {
  const limits = [inactivitySeconds && inactivitySeconds + KEEP_SECONDS, keepIdleSeconds].filter((each) => each)
  return limits.length > 0 ? Math.min(...(limits as number[])) : undefined
}

/** Removal of personal data from audit entries, which stay. */
function erasures(deps: Deps, log: Logger, ago: (seconds: number) => Date): Kinds {
  const { db, config } = deps
  const { auditPiiRetentionSeconds: seconds, jwt } = config
  if (!seconds) return {}
  const erasure = () => ({ before: ago(seconds), roles: jwt.adminRoles })
  const report = (entries: number) => log.info({ entries }, 'personal data erased from audit entries')
  return {
    'personal data of deleted users': {
      begin: () =>
        byOneProcess(deps, 'personal data of deleted users', searchEveryMs(seconds), () =>
          logged(eraseDeletedUsers(db, erasure()), report),
        ),
    },
    'personal data of refused sign-ins': { begin: (from) => logged(eraseRefusedSignIns(db, erasure(), from), report) },
  }
}

/** Reports the batches that changed rows. */
async function* logged<Result>(
  batches: AsyncGenerator<number, Result>,
  report: (rows: number) => void,
): AsyncGenerator<void, Result> {
  for (;;) {
    const { done, value } = await batches.next()
    if (done) return value
    if (value > 0) report(value)
    yield
  }
}
