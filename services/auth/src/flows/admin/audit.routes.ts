// The audit log for administrators. Users, links and messages have folders of their own.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { withAsciiDomain } from '../../adapters/mail/email-address.ts'
import { type ListedEntry, listAuditEntries, listAuditEntriesAfter } from '../../core/audit/list-audit.store.ts'
import type { AuditSearch } from '../../core/audit/search-audit.store.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { CursorQuery, formatCursor, isWalk, parseCursor } from '../../http/bodies/cursor.ts'
import {
  linkTo,
  PAGE_HEADERS,
  PageQuery,
  pageHeaders,
  parseLimit,
  parsePage,
  reachedPage,
} from '../../http/bodies/paging.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'

const MAX_TEXT_LENGTH = 255

const AuditEntryShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    payload: FreeForm,
    created_at: Type.String({ format: 'date-time' }),
    ip_address: Type.String(),
  },
  { title: 'AuditEntry' },
)

export const auditRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps: { reads } }) => {
  app.route({
    method: 'GET',
    url: '/admin/audit',
    schema: {
      operationId: 'listAuditEntries',
      tags: ['admin'],
      summary: 'The audit log, newest first',
      description:
        'By cursor, when only `limit` or `cursor` is given, the `Link` to the next answer has its cursor. A page that begins past the first 1,000,000 entries, or 10,000 that a query finds, is 400.',
      security: [{ admin: [] }],
      querystring: Type.Object({
        ...PageQuery,
        ...CursorQuery,
        query: Type.Optional(
          Type.String({
            description:
              'Part of an author, action or type: `author:…`, `action:…` or `type:…`, in any case. `user:` and an id finds entries by and on this user. Among more than 50,000 entries an author is up to 100 users whose present address or name contains the text. It also stands for exactly that address or role. More users are 400.',
          }),
        ),
      }),
      response: { 200: withHeaders(Type.Array(AuditEntryShape), ...PAGE_HEADERS), ...errorResponses(400, 401, 403) },
    },
    handler: async (request, reply) => {
      const { query, url } = request
      const search = parseSearch(query.query)
      if (isWalk(query)) {
        const limit = parseLimit(query.limit)
        const after = query.cursor ? parseCursor(query.cursor) : undefined
        const { entries, next } = await reads.current((db) => listAuditEntriesAfter(db, search, { limit, after }))
        if (next) reply.header('link', linkTo(url, { cursor: formatCursor(next) }, 'next'))
        return entries.map(toBody)
      }
      const page = parsePage(query, { isSearch: search !== undefined })
      const { rows, total } = await reachedPage(page, (reached) =>
        reads.current((db) => listAuditEntries(db, search, reached)),
      )
      reply.headers(pageHeaders(url, page, total))
      return rows.map(toBody)
    },
  })
}

const toBody = (entry: ListedEntry) => ({ ...entry, created_at: entry.created_at.toISOString() })

function parseSearch(query: string | undefined): AuditSearch | undefined {
  if (!query) return undefined
  const [, scope, text = ''] = /^(author|action|type|user):(.*)$/s.exec(query) ?? []
  if (!scope || text.length > MAX_TEXT_LENGTH || text.includes('\0')) {
    throw apiError('validation_failed', { message: 'query must be author:…, action:…, type:… or user:…' })
  }
  if (scope === 'user') {
    if (!UUID.test(text)) throw apiError('validation_failed', { message: 'user:… must have the id of a user' })
    return { scope, text: text.toLowerCase() }
  }
  return text === '' ? undefined : { scope: scope as AuditSearch['scope'], text: withAsciiDomain(text) }
}
