import { ApiError } from '@services/common/errors'
import { counted } from '@services/common/instruments'
import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'
import { NIL_UUID } from '../db/uuid.ts'
import { countSignIn } from '../metrics.ts'
import { type AuditDeps, type AuditEvent, type AuditLog, audit, logAudit } from './audit.ts'

/** Longest address (RFC 5321, section 4.5.3.1.3); what is typed instead may be a megabyte. */
const MAX_TYPED = 254

/** Too many requests and a busy service are no attempts: recording them would let a flood fill the log. */
const isAttempt = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status < 500 && error.status !== 429

interface AttemptDeps extends AuditDeps {
  db: Kysely<DB>
  limits: { isRefusalStored(): Promise<boolean> }
}

/**
 * Counts a sign-in by how it ended, and records one that was refused under the address that was typed, known or not: both
 * leave the same entry, which names no account. The refusal is thrown on.
 */
export async function recordSignIn<Result>(
  deps: AttemptDeps,
  log: AuditLog & { warn(fields: object, message: string): void },
  { method, typed }: { method: string; typed: string },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await counted((result) => countSignIn(method, result), work)
  } catch (error) {
    if (isAttempt(error)) {
      const actor = { id: NIL_UUID, email: typed.slice(0, MAX_TYPED), phone: null, user_metadata: {} }
      const traits = { provider: method, error_code: error.code }
      await recordRefusal(deps, log, { action: 'login_failed', actor, traits }).catch((err) =>
        log.warn({ err }, 'a refused sign-in could not be recorded'),
      )
    }
    throw error
  }
}

/** Past so many an hour the log alone has them: strangers make as many as they like. */
async function recordRefusal(deps: AttemptDeps, log: AuditLog, event: AuditEvent): Promise<void> {
  if (deps.config.auditInDatabase && (await deps.limits.isRefusalStored())) return audit(deps, deps.db, log, event)
  logAudit(log, event)
}
