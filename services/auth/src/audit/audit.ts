import type { FastifyBaseLogger } from 'fastify'
import type { Kysely } from 'kysely'
import type { DB, Metadata } from '../db/tables.ts'
import { insertAuditEntry } from './audit.store.ts'

/** What is recorded, by log type (contract/auth-core.md 14). */
const LOG_TYPES = {
  login: 'account',
  logout: 'account',
  user_signedup: 'team',
  token_refreshed: 'token',
  token_reuse_detected: 'token',
  user_modified: 'user',
  user_confirmation_requested: 'user',
  user_repeated_signup: 'user',
  user_updated_password: 'user',
} as const

export type AuditAction = keyof typeof LOG_TYPES

export interface Actor {
  id: string
  email: string | null
  phone: string | null
  user_metadata: Metadata
}

export interface AuditEvent {
  action: AuditAction
  actor: Actor
  traits?: Metadata
}

/** The entry's payload: who did what, in the reference's words. */
export function auditPayload({ action, actor, traits }: AuditEvent): Metadata {
  const name = actor.user_metadata.full_name
  return {
    actor_id: actor.id,
    actor_via_sso: false,
    actor_username: actor.phone || actor.email || '',
    ...(typeof name === 'string' ? { actor_name: name } : {}),
    action,
    log_type: LOG_TYPES[action],
    ...(traits ? { traits } : {}),
  }
}

export interface AuditDeps {
  now: () => Date
  newId: () => string
  config: { auditInDatabase: boolean }
}

/** Writes the entry in the caller's transaction and a log line, which carries ids only: never an address. */
export async function audit(deps: AuditDeps, db: Kysely<DB>, log: FastifyBaseLogger, event: AuditEvent): Promise<void> {
  log.info({ audit: event.action, userId: event.actor.id, traits: event.traits }, 'audit')
  if (!deps.config.auditInDatabase) return
  await insertAuditEntry(db, { id: deps.newId(), payload: auditPayload(event), now: deps.now() }).execute()
}
