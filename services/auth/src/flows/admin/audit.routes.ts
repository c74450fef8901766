import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/documented'
import { Type } from 'typebox'
import { type AuditSearch, listAuditEntries } from '../../core/audit/audit.store.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { PAGE_HEADERS, PageQuery, pageHeaders, parsePage } from '../../http/paging.ts'
import { errorResponses } from '../../http/shapes.ts'

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
      security: [{ admin: [] }],
      querystring: Type.Object({
        ...PageQuery,
        query: Type.Optional(
          Type.String({
            description: 'Part of an author, action or type: `author:…`, `action:…` or `type:…`, in any case.',
          }),
        ),
      }),
      response: { 200: withHeaders(Type.Array(AuditEntryShape), ...PAGE_HEADERS), ...errorResponses(400, 401, 403) },
    },
    handler: async (request, reply) => {
      const page = parsePage(request.query)
      const search = parseSearch(request.query.query)
      const { entries, total } = await reads.current((db) => listAuditEntries(db, search, page))
      reply.headers(pageHeaders(request.url, page, total))
      return entries.map((entry) => ({ ...entry, created_at: entry.created_at.toISOString() }))
    },
  })
}

function parseSearch(query: string | undefined): AuditSearch | undefined {
  if (!query) return undefined
  const [, scope, text = ''] = /^(author|action|type):(.*)$/s.exec(query) ?? []
  if (!scope || text.length > MAX_TEXT_LENGTH || text.includes('\0')) {
    throw apiError('validation_failed', { message: 'query must be author:…, action:… or type:…' })
  }
  return text === '' ? undefined : { scope: scope as AuditSearch['scope'], text }
}
