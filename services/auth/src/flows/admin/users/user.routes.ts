// Operations on the user of the path: the user, their sessions and their second factors.
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { audit } from '../../../core/audit/audit.ts'
import { requireNoRights } from '../../../core/oauth-server/scopes/scoped-changes.ts'
import { endAllSessions, endOneSession, sessionNotFound } from '../../../core/sessions/end-session.ts'
import { listLiveSessions, listLiveSessionsAfter, SessionInfoShape } from '../../../core/sessions/session-info.ts'
import { registeredBody } from '../../../core/sessions/user-answers.ts'
import { exportUser, UserExport } from '../../../core/user-export/export-user.ts'
import { FactorShape, toFactorBody, UserShape } from '../../../core/users/user-shape.ts'
import type { User } from '../../../core/users/users.store.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { CursorQuery, formatCursor, isWalk, parseCursor } from '../../../http/bodies/cursor.ts'
import { linkTo, parseLimit } from '../../../http/bodies/paging.ts'
import { errorResponses, Field } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { subjectOf } from '../../../http/caller/subject.ts'
import { deleteUser } from './delete-user.ts'
import { updateUser } from './update-user.ts'
import { deleteUserFactor, updateUserFactor } from './user-factors.ts'
import { UserFields } from './user-input.ts'

const url = '/admin/users/:user_id'
const schema = { tags: ['admin'], security: [{ admin: [] }], params: Type.Object({ user_id: Type.String() }) }

export const adminUserRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url,
    schema: {
      ...schema,
      operationId: 'adminGetUser',
      summary: 'One user, soft-deleted ones too',
      response: { 200: withHeaders(UserShape, 'ETag'), ...errorResponses(401, 403, 404) },
    },
    handler: async (request, reply) => {
      const user = subjectOf(request)
      reply.header('etag', versionOf(user))
      return registeredBody(deps, deps.db, user)
    },
  })

  app.route({
    method: 'GET',
    url: `${url}/export`,
    exposeHeadRoute: false,
    schema: {
      ...schema,
      operationId: 'adminExportUser',
      summary: 'All that is stored about a user, without secrets, as the user would get it',
      response: { 200: Type.Unsafe<Readable>(UserExport), ...errorResponses(401, 403, 404) },
    },
    handler: async (request, reply) => {
      const user = subjectOf(request)
      const body = await registeredBody(deps, deps.db, user)
      const event = { action: 'account_exported', actor: adminOf(request), target: user } as const
      await audit(deps, deps.db, request.log, event)
      return reply
        .type('application/json; charset=utf-8')
        .header('content-disposition', 'attachment; filename="account.json"')
        .send(Readable.from(exportUser(deps, body)))
    },
  })

  app.route({
    method: 'PUT',
    url,
    schema: {
      ...schema,
      operationId: 'adminUpdateUser',
      summary: 'Changes a user at once, without any mail',
      description:
        'A new password ends all sessions. A new address is applied directly, without its proof: confirmed if the previous one was, unless `email_confirm` or `phone_confirm` is false. Never pass on an address from a form of the user, who changes it by PUT /user. `""` removes an address with its identity and pending change, but not the last way in; null counts as absent. Metadata is merged at the top level; null removes a key. With `If-Match`, a user that has changed since it was read is left as it is. Factors, passkeys and sessions are no part of that version.',
      requestHeaders: ['If-Match'],
      body: UserFields,
      response: { 200: withHeaders(UserShape, 'ETag'), ...errorResponses(400, 401, 403, 404, 412, 413, 422) },
    },
    handler: async (request, reply) => {
      const { id } = subjectOf(request)
      requireNoRights(adminOf(request).scopes, request.body)
      const isExpected = isNamedBy(request.headers['if-match'])
      const user = await updateUser(deps, request.log, adminOf(request), id, request.body, isExpected)
      reply.header('etag', versionOf(user))
      return registeredBody(deps, deps.db, user)
    },
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      ...schema,
      operationId: 'adminDeleteUser',
      summary: 'Deletes a user',
      description:
        'Ends all sessions. With `should_soft_delete` the row stays with its id, role and times, without addresses, metadata or password; the addresses are free for others. Without it all of the user is deleted except the audit log.',
      body: Type.Union([Type.Object({ should_soft_delete: Type.Optional(Type.Boolean()) }), Type.Null()]),
      response: { 200: Type.Object({}), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request) => {
      const deletion = request.body?.should_soft_delete ? 'soft' : 'hard'
      await deleteUser(deps, request.log, adminOf(request), subjectOf(request).id, deletion)
      return {}
    },
  })
}

/**
 * Version of a user, which every change of the own row advances: its `updated_at`. Factors, passkeys and sessions have
 * rows of their own, and two changes of one millisecond have one version.
 */
const versionOf = ({ updated_at: updatedAt }: Pick<User, 'updated_at'>) => `"${updatedAt.toISOString()}"`

/**
 * Reads If-Match (RFC 9110 13.1.1): without it, and by `*`, any version is expected. A weak tag counts as the strong
 * one: proxies that compress make it so, and it names a version, not bytes.
 */
const isNamedBy = (header: string | undefined) => (user: User) =>
  header === undefined ||
  header.split(',').some((name) => ['*', versionOf(user)].includes(name.trim().replace(/^W\//, '')))

export const adminSessionsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: `${url}/sessions`,
    schema: {
      ...schema,
      operationId: 'adminListSessions',
      summary: "A user's sessions, newest first",
      description:
        'The newest 1,000. With `limit` or `cursor` those of a page, and the `Link` to the next answer has its cursor. Ended ones are left out, so a page can have fewer.',
      querystring: Type.Object(CursorQuery),
      response: { 200: withHeaders(Type.Array(SessionInfoShape), 'Link'), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request, reply) => {
      const { query, url } = request
      if (!isWalk(query)) return listLiveSessions(deps, subjectOf(request).id)
      const after = query.cursor ? parseCursor(query.cursor) : undefined
      const page = { limit: parseLimit(query.limit), after }
      const { sessions, next } = await listLiveSessionsAfter(deps, subjectOf(request).id, page)
      if (next) reply.header('link', linkTo(url, { cursor: formatCursor(next) }, 'next'))
      return sessions
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/sessions`,
    schema: {
      ...schema,
      operationId: 'adminEndSessions',
      summary: 'Signs a user out everywhere',
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      await endAllSessions(deps, request.log, adminOf(request), subjectOf(request))
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/sessions/:session_id`,
    schema: {
      ...schema,
      operationId: 'adminEndSession',
      summary: 'Ends one session of a user',
      params: Type.Object({ user_id: Type.String(), session_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { session_id: sessionId } = request.params
      if (!UUID.test(sessionId)) throw sessionNotFound()
      await endOneSession(deps, request.log, adminOf(request), subjectOf(request), sessionId)
      return reply.code(204).send(null)
    },
  })
}

const FactorParams = Type.Object({ user_id: Type.String(), factor_id: Type.String() })

export const adminFactorsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: `${url}/factors`,
    schema: {
      ...schema,
      operationId: 'adminListFactors',
      summary: "A user's second factors, oldest first",
      response: { 200: Type.Array(FactorShape), ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => (subjectOf(request).factors ?? []).map(toFactorBody),
  })

  app.route({
    method: 'PUT',
    url: `${url}/factors/:factor_id`,
    schema: {
      ...schema,
      operationId: 'adminUpdateFactor',
      summary: 'Renames a second factor, or changes its phone number',
      params: FactorParams,
      body: Type.Object({ friendly_name: Type.Optional(Field), phone: Type.Optional(Field) }),
      response: { 200: FactorShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: (request) => {
      const { friendly_name: friendlyName, phone } = request.body
      const update = { userId: subjectOf(request).id, factorId: request.params.factor_id, friendlyName, phone }
      return updateUserFactor(deps, request.log, adminOf(request), update)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/factors/:factor_id`,
    schema: {
      ...schema,
      operationId: 'adminDeleteFactor',
      summary: 'Removes a second factor, for a user who lost it',
      description: 'Sessions that were raised with it are aal1 again.',
      params: FactorParams,
      response: { 200: FactorShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: (request) => {
      const { factor_id: factorId } = request.params
      return deleteUserFactor(deps, request.log, adminOf(request), subjectOf(request).id, factorId)
    },
  })
}
