import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument, withHeaders } from '@services/common/documented'
import { Type } from 'typebox'
import {
  type Direction,
  listUsers,
  listUsersAfter,
  type UserPlace,
  type UserSearch,
} from '../../core/users/list-users.store.ts'
import { toRegisteredBody, UserShape } from '../../core/users/user-shape.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminAudience } from '../../http/authenticate.ts'
import { linkTo, PAGE_HEADERS, PageQuery, pageHeaders, parseLimit, parsePage } from '../../http/paging.ts'
import { choiceOf, errorResponses } from '../../http/shapes.ts'
import { parseFilter } from './user-input.ts'

const ListQuery = Type.Object({
  ...PageQuery,
  sort: Type.Optional(choiceOf(['created_at', 'created_at asc', 'created_at desc'])),
  filter: Type.Optional(Type.String({ description: 'Part of an e-mail address or of `user_metadata.full_name`.' })),
  limit: Type.Optional(
    Type.String({
      description: 'Users per answer when listing by cursor, at most 1000; larger values are taken as 1000.',
      ...inDocument({ type: 'integer', minimum: 1, default: 50 }),
    }),
  ),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the previous answer.' })),
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
      description: 'Pages carry `X-Total-Count` and `Link` (next, last); a cursor carries only `Link` (next).',
      security: [{ admin: [] }],
      querystring: ListQuery,
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: withHeaders(UserListShape, ...PAGE_HEADERS), ...errorResponses(400, 401, 403) },
    },
    handler: async (request, reply) => {
      const { query, url } = request
      const search = { aud: adminAudience(request, deps.config.jwt), filter: parseFilter(query.filter) }
      const direction = parseSort(query.sort)
      const byCursor = query.limit !== undefined || query.cursor !== undefined
      if (byCursor && !query.page && !query.per_page) {
        const { users, pagination } = await walk(search, direction ?? 'asc', parseLimit(query.limit), query.cursor)
        if (pagination.next_cursor) reply.header('link', linkTo(url, { cursor: pagination.next_cursor }, 'next'))
        return { users: users.map(toRegisteredBody), aud: search.aud, pagination }
      }
      const page = parsePage(query)
      const { users, total } = await listUsers(deps.db, search, { direction: direction ?? 'desc', ...page })
      reply.headers(pageHeaders(url, page, total))
      return { users: users.map(toRegisteredBody), aud: search.aud }
    },
  })

  async function walk(search: UserSearch, direction: Direction, limit: number, cursor: string | undefined) {
    const after = cursor ? parseCursor(cursor) : undefined
    const found = await listUsersAfter(deps.db, search, { direction, limit: limit + 1, after })
    const users = found.slice(0, limit)
    const last = users.at(-1)
    const hasMore = found.length > limit
    const next = hasMore && last ? { next_cursor: formatCursor(last.place) } : {}
    return { users, pagination: { ...next, has_more: hasMore } }
  }
}

function parseSort(sort: string | undefined): Direction | undefined {
  if (!sort) return undefined
  const match = /^created_at(?: (asc|desc))?$/.exec(sort)
  if (match) return (match[1] ?? 'desc') as Direction
  throw apiError('validation_failed', { message: 'sort must be created_at, created_at asc or created_at desc' })
}

const MAX_CURSOR_LENGTH = 300

/** Opaque to clients: base64url of `{"created_at","id"}`. */
const formatCursor = ({ createdAt, id }: UserPlace): string =>
  Buffer.from(JSON.stringify({ created_at: createdAt, id })).toString('base64url')

/** Throws validation_failed for a malformed cursor, which must not reach the database. */
function parseCursor(cursor: string): UserPlace {
  const place = cursor.length <= MAX_CURSOR_LENGTH ? readJson(cursor) : undefined
  const { created_at: createdAt, id } = (place ?? {}) as { created_at?: unknown; id?: unknown }
  const time = typeof createdAt === 'string' ? normalTime(createdAt) : undefined
  if (!time || typeof id !== 'string' || !UUID.test(id) || id === NIL_UUID) {
    throw apiError('validation_failed', { message: 'cursor is not valid' })
  }
  return { createdAt: time, id }
}

function readJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}

const RFC_3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$/

/** Returns UTC with all six digits, which a Date would cut to three; undefined for a malformed time and for year 1. */
function normalTime(text: string): string | undefined {
  const [, time, fraction = '', zone] = RFC_3339.exec(text) ?? []
  const seconds = Date.parse(`${time}${zone}`)
  if (Number.isNaN(seconds)) return undefined
  const inUtc = new Date(seconds).toISOString().slice(0, 19)
  return /^\d{4}-/.test(inUtc) && !inUtc.startsWith('000') ? `${inUtc}${fraction}Z` : undefined
}
