// GET /audit: acts of administrators and commands. They are recorded by core/audit/audit.ts. Tests: audit.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { SUBJECT_OF } from '../../core/audit/audit.ts'
import { readAudit } from '../../core/audit/read-audit.ts'
import { AUDIT_ACTIONS } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, orNull, Time, tokenRoute } from '../../http/shapes.ts'

const Maybe = (description: string) => Type.Optional(Type.String({ maxLength: 40, description }))
const ActionShape = Type.Enum(AUDIT_ACTIONS, { title: 'AuditAction' })

const Query = Type.Object({
  ...pageQuery,
  token: Maybe('Id of the token that acted.'),
  action: Type.Optional(ActionShape),
  subject: Maybe('Id of the clip, token or dead letter.'),
  from: Maybe('Earliest time: a day in UTC, or a time (RFC 3339).'),
  to: Maybe('Time before which the acts were.'),
})

const EntryShape = Type.Object(
  {
    id: Type.String(),
    at: Time,
    token: orNull(Type.Object({ id: Type.String(), name: orNull(Type.String()) }), {
      description: 'Token that acted; null for a command.',
    }),
    operator: orNull(Type.String({ description: 'Account of the machine, for a command.' })),
    action: ActionShape,
    subject: Type.Object({
      kind: Type.Enum(['clip', 'album', 'token', 'dead_letter', 'storage'] as const),
      id: orNull(Type.String()),
    }),
    address: orNull(Type.String({ description: 'Address of the client, where it is known.' })),
    details: Type.Unsafe<object>(Type.Object({}, { additionalProperties: true })),
  },
  { title: 'AuditEntry' },
)

export const auditRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { baseUrl } = deps.config.site
  app.get(
    '/audit',
    {
      schema: {
        ...tokenRoute('administration', 'listAudit', 'Acts of administrators and commands, newest first'),
        querystring: Query,
        response: answers(200, pageOf(EntryShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { query } = request
      const place = readPage(query, isUuid)
      const { items, nextCursor } = cutPage(await readAudit(deps.db, query, place), place.limit)
      if (nextCursor) reply.header('link', linkToNext(baseUrl, '/audit', { ...query, cursor: nextCursor }))
      return {
        success: {
          items: items.map(({ token_id: id, token_name: name, created_at: at, target, ...entry }) => ({
            ...{ id: entry.id, at, token: id === null ? null : { id, name }, operator: entry.operator },
            ...{ action: entry.action, subject: { kind: SUBJECT_OF[entry.action], id: target } },
            ...{ address: entry.address, details: entry.details },
          })),
          next_cursor: nextCursor,
        },
      }
    },
  )
}
