// The audit log for administrators. Users, links and messages have folders of their own.
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { audit } from '../../core/audit/audit.ts'
import { type ListedEntry, listAuditEntries, listAuditEntriesAfter } from '../../core/audit/list-audit.store.ts'
import { FreeForm } from '../../core/users/metadata.ts'
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
import { choiceOf, errorResponses } from '../../http/bodies/shapes.ts'
import { adminOf } from '../../http/caller/admin-only.ts'
import { auditFile, EXPORT_FORMATS, type ReadEntries } from './audit-file.ts'
import { AuditQuery, parseFilter } from './audit-filter.ts'

const AuditEntryShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    payload: FreeForm,
    created_at: Type.String({ format: 'date-time' }),
    ip_address: Type.String(),
  },
  { title: 'AuditEntry' },
)

const Export = Type.Unsafe<Readable>({
  content: { 'application/x-ndjson': { schema: Type.String() }, 'text/csv': { schema: Type.String() } },
})

export const auditRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { reads } = deps
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
        ...AuditQuery,
      }),
      response: { 200: withHeaders(Type.Array(AuditEntryShape), ...PAGE_HEADERS), ...errorResponses(400, 401, 403) },
    },
    handler: async (request, reply) => {
      const { query, url } = request
      const filter = parseFilter(query)
      if (isWalk(query)) {
        const limit = parseLimit(query.limit)
        const after = query.cursor ? parseCursor(query.cursor) : undefined
        const { entries, next } = await reads.current((db) => listAuditEntriesAfter(db, filter, { limit, after }))
        if (next) reply.header('link', linkTo(url, { cursor: formatCursor(next) }, 'next'))
        return entries.map(toBody)
      }
      const page = parsePage(query, { isSearch: filter.search !== undefined })
      const { rows, total } = await reachedPage(page, (reached) =>
        reads.current((db) => listAuditEntries(db, filter, reached)),
      )
      reply.headers(pageHeaders(url, page, total))
      return rows.map(toBody)
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/audit/export',
    // HEAD would read the whole log.
    exposeHeadRoute: false,
    schema: {
      operationId: 'exportAuditEntries',
      tags: ['admin'],
      summary: 'Entries of the audit log as a file, newest first',
      description:
        'JSON lines as in the list, or CSV with a line of names. An export that takes longer than AUTH_API_MAX_REQUEST_DURATION is cut off without its end: select fewer by time.',
      security: [{ admin: [] }],
      querystring: Type.Object({ format: Type.Optional(choiceOf(EXPORT_FORMATS)), ...AuditQuery }),
      response: { 200: Export, ...errorResponses(400, 401, 403) },
    },
    handler: async (request, reply) => {
      const { query } = request
      const format = EXPORT_FORMATS.find((name) => name === (query.format || 'jsonl'))
      if (!format) throw apiError('validation_failed', { message: `format must be ${inWords(EXPORT_FORMATS, 'or')}` })
      const filter = parseFilter(query)
      const read: ReadEntries = (position) => reads.current((db) => listAuditEntriesAfter(db, filter, position))
      const { headers, text } = await auditFile(format, read)
      await audit(deps, deps.db, request.log, {
        ...{ action: 'audit_exported', actor: adminOf(request), traits: { type: format } },
      })
      return reply.headers(headers).send(Readable.from(text))
    },
  })
}

const toBody = (entry: ListedEntry) => ({ ...entry, created_at: entry.created_at.toISOString() })
