import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import { requireNoAdministrator } from '../../core/oauth-server/scopes/scoped-changes.ts'
import { findUserById, type User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { adminOf } from './admin-only.ts'

declare module 'fastify' {
  interface FastifyRequest {
    subject: User | null
  }
}

interface SubjectDeps {
  config: Pick<Config, 'jwt'>
  db: Kysely<DB>
}

/** Loads the user `:user_id` as `subjectOf(request)`, before the body as in the reference: a wrong id is always 404. */
export function requireSubject(app: FastifyInstance, { config, db }: SubjectDeps): void {
  app.decorateRequest('subject', null)
  app.addHook('onRequest', async (request) => {
    const { user_id: userId } = request.params as { user_id: string }
    if (!UUID.test(userId)) throw apiError('validation_failed', { status: 404, message: 'user_id must be a UUID' })
    const user = await findUserById(db, userId)
    if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
    if (request.method !== 'GET') requireNoAdministrator(adminOf(request).scopes, config.jwt, user)
    request.subject = user
  })
}

export function subjectOf(request: FastifyRequest): User {
  if (!request.subject) throw new Error('route outside the scope of requireSubject')
  return request.subject
}
