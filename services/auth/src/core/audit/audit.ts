// The audit log: a row and a log line for each committed event. Log lines contain ids, never addresses.
import { afterCommit } from '@services/common/database/after-commit'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB, Metadata } from '../../db/tables.ts'
import { type AuditAction, LOG_TYPES } from './actions.ts'
import { type AuditEntry, insertAuditEntry } from './audit.store.ts'
import type { OnlyKept, PersonalTraits, Traits } from './personal-data.ts'

export interface Actor {
  id: string
  email: string | null
  phone: string | null
  user_metadata: Metadata
}

export interface AuditEvent {
  action: AuditAction
  actor: Actor
  /** User that it was done to, unless the actor; stored as traits `user_id`, `user_email` and `user_phone`. */
  target?: Pick<Actor, 'id' | 'email' | 'phone'>
  /** Also logged: ids and kinds only, never an address. */
  traits?: Traits
  /** Personal data of the actor beside its addresses: stored, never logged, and erased with them. */
  personalTraits?: PersonalTraits
}

/** Logger of the request or, for commands, of the process. */
export type AuditLog = Pick<Logger, 'info' | 'warn'>

function auditPayload(
  { action, actor, target, traits, personalTraits }: AuditEvent,
  { userAgent, via, clientId }: Partial<Origin>,
): Metadata {
  const name = actor.user_metadata.full_name
  const about = target && { user_id: target.id, user_email: target.email ?? '', user_phone: target.phone ?? '' }
  return {
    actor_id: actor.id,
    actor_via_sso: false,
    actor_username: actor.phone || actor.email || '',
    ...(typeof name === 'string' ? { actor_name: name } : {}),
    action,
    log_type: LOG_TYPES[action],
    ...(userAgent ? { user_agent: userAgent } : {}),
    ...(via ? { via } : {}),
    ...(clientId ? { client_id: clientId } : {}),
    ...(about || traits ? { traits: { ...about, ...traits, ...personalTraits } } : {}),
  }
}

/** Client of a request; the address is that of limits and session lists. */
export interface Origin {
  ip: string | null
  userAgent: string | null
  /** The administrator acted in the console. */
  via?: 'console'
  /** Client of the OAuth server whose token the request has. */
  clientId?: string
}

const origins = new WeakMap<object, () => Origin>()

/** Ties a request's logger to its origin, which audit entries then contain; read only when an event is audited. */
export const recordOrigin = (log: object, readOrigin: () => Origin): void => void origins.set(log, readOrigin)

/** Returns the origin of the logger's request; undefined for commands and workers. */
export const originOf = (log: object): Origin | undefined => origins.get(log)?.()

export interface AuditDeps {
  now: () => Date
  newRowId: () => string
  config: { auditInDatabase: boolean }
}

/** Logs an event whose entry a statement of the caller stores. */
export function logAudit(log: AuditLog, { action, actor, target, traits }: AuditEvent): void {
  log.info({ audit: action, userId: actor.id, targetId: target?.id, traits }, 'audit')
}

export type PendingAudit = ReturnType<typeof pendingAudit>

/** Prepares an event whose entry (null: none) a statement of the caller stores; `log` is called after its commit. */
export function pendingAudit<Event extends AuditEvent>(deps: AuditDeps, log: AuditLog, event: Event & OnlyKept<Event>) {
  return { entry: auditEntry(deps, log, event), log: () => logAudit(log, event) }
}

function auditEntry(deps: AuditDeps, log: AuditLog, event: AuditEvent): AuditEntry | null {
  if (!deps.config.auditInDatabase) return null
  const origin: Partial<Origin> = originOf(log) ?? {}
  return { id: deps.newRowId(), payload: auditPayload(event, origin), ipAddress: origin.ip ?? '', now: deps.now() }
}

/** Stores an event in the caller's transaction and logs it after the commit. */
export async function audit<Event extends AuditEvent>(
  deps: AuditDeps,
  db: Kysely<DB>,
  log: AuditLog,
  event: Event & OnlyKept<Event>,
): Promise<void> {
  const entry = auditEntry(deps, log, event)
  if (entry) await insertAuditEntry(db, entry)
  await afterCommit(db, () => logAudit(log, event))
}
