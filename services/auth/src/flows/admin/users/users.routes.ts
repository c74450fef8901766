import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { requireNoRights } from '../../../core/oauth-server/scopes/scoped-changes.ts'
import { registeredBodies, registeredBody } from '../../../core/sessions/user-answers.ts'
import { type Direction, listUsers, listUsersAfter, type UserSearch } from '../../../core/users/list-users.store.ts'
import { UserShape } from '../../../core/users/user-shape.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { CursorQuery, formatCursor, isWalk, parseCursor } from '../../../http/bodies/cursor.ts'
import {
  linkTo,
  PAGE_HEADERS,
  PageQuery,
  pageHeaders,
  parseLimit,
  parsePage,
  reachedPage,
} from '../../../http/bodies/paging.ts'
import { choiceOf, errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { adminAudience } from '../../../http/caller/authenticate.ts'
import { createUser } from './create-user.ts'
import { type NewUser, NewUserFields, parseFilter } from './user-input.ts'

const ListQuery = Type.Object({
  ...PageQuery,
  sort: Type.Optional(choiceOf(['created_at', 'created_at asc', 'created_at desc'])),
  filter: Type.Optional(
    Type.String({
      description:
        'Part of an e-mail address, of a phone number as it is written or of `user_metadata.full_name`, in any case. Among more than 50,000 users the beginning of one, if there are no three letters or digits in a row or the database lacks trigrams.',
    }),
  ),
  ...CursorQuery,
})

const UserListShape = Type.Object(
  {
    users: Type.Array(UserShape),
    aud: Type.String(),
    pagination: Type.Optional(
      Type.Object(
        { next_cursor: Type.Optional(Type.String()), has_more: Type.Boolean() },
        { description: 'Present when listing by cursor.' },
      ),
    ),
  },
  { title: 'UserList' },
)

/** GET /admin/users, by page, or by cursor when only `limit` or `cursor` is given; in the scope of requireAdmin. */
export const listUsersRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/users',
    schema: {
      operationId: 'adminListUsers',
      tags: ['admin'],
      summary: 'Users of the audience, newest first; by cursor oldest first',
      description:
        'Pages carry `X-Total-Count` and `Link` (next, last); a cursor carries only `Link` (next). A page that begins past the first 1,000,000 users, or 10,000 that a filter finds, is 400.',
      security: [{ admin: [] }],
      querystring: ListQuery,
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: withHeaders(UserListShape, ...PAGE_HEADERS), ...errorResponses(400, 401, 403) },
    },
    // Half the time of the schema's serialiser for a page of 54 KB; bodies have the members of registeredBodies alone.
    serializerCompiler: () => JSON.stringify,
    handler: async (request, reply) => {
      const { query, url } = request
      const search = { aud: adminAudience(request, deps.config.jwt), filter: parseFilter(query.filter) }
      const direction = parseSort(query.sort)
      if (isWalk(query)) {
        const { users, pagination } = await walk(search, direction ?? 'asc', parseLimit(query.limit), query.cursor)
        if (pagination.next_cursor) reply.header('link', linkTo(url, { cursor: pagination.next_cursor }, 'next'))
        return { users: await registeredBodies(deps, deps.db, users), aud: search.aud, pagination }
      }
      const page = parsePage(query, { isSearch: search.filter !== undefined })
      const { rows: users, total } = await reachedPage(page, (reached) =>
        deps.reads.current((db) => listUsers(db, search, direction ?? 'desc', reached)),
      )
      reply.headers(pageHeaders(url, page, total))
      return { users: await registeredBodies(deps, deps.db, users), aud: search.aud }
    },
  })

  async function walk(search: UserSearch, direction: Direction, limit: number, cursor: string | undefined) {
    const after = cursor ? parseCursor(cursor) : undefined
    const { users, next } = await deps.reads.current((db) => listUsersAfter(db, search, { direction, limit, after }))
    return { users, pagination: { ...(next && { next_cursor: formatCursor(next) }), has_more: next !== undefined } }
  }
}

function parseSort(sort: string | undefined): Direction | undefined {
  if (!sort) return undefined
  const match = /^created_at(?: (asc|desc))?$/.exec(sort)
  if (match) return (match[1] ?? 'desc') as Direction
  throw apiError('validation_failed', { message: 'sort must be created_at, created_at asc or created_at desc' })
}

/** POST /admin/users, and the specification's path with an id of the caller's choice; in the scope of requireAdmin. */
export const createUserRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const schema = {
    tags: ['admin'],
    description:
      'Needs an e-mail address or a phone number. Sends no message. An address counts as proven where `email_confirm` or `phone_confirm` is true. Otherwise it waits for a link or code that is requested later. A password need not be strong; without `password` and `password_hash` the user has none and signs in by link or code. A duplicate is 422: `email_exists`, `phone_exists`, or `user_already_exists` for the id.',
    security: [{ admin: [] }],
    body: NewUserFields,
    requestHeaders: ['X-JWT-AUD'],
    response: { 200: UserShape, ...errorResponses(400, 401, 403, 413, 422) },
  }

  app.route({
    method: 'POST',
    url: '/admin/users',
    schema: { ...schema, operationId: 'adminCreateUser', summary: 'Creates a user' },
    handler: (request) => create(request, request.body),
  })

  app.route({
    method: 'POST',
    url: '/admin/users/:user_id',
    schema: {
      ...schema,
      operationId: 'adminCreateUserWithId',
      summary: 'Creates a user with this id',
      params: Type.Object({ user_id: Type.String() }),
      response: { ...schema.response, ...errorResponses(404) },
    },
    handler: (request) => {
      const { user_id: id } = request.params
      if (request.body.id !== undefined && request.body.id !== id) {
        throw apiError('validation_failed', { message: 'The id of the body is not that of the path' })
      }
      return create(request, { ...request.body, id })
    },
  })

  async function create(request: FastifyRequest, body: NewUser) {
    requireNoRights(adminOf(request).scopes, body)
    const aud = body.aud || adminAudience(request, deps.config.jwt)
    return registeredBody(deps, deps.db, await createUser(deps, request.log, adminOf(request), { ...body, aud }))
  }
}
