// /reports and /media/{id}/moderation: reports and decisions of moderators. A decision is recorded with its token, time
// and note. Effects of each decision on its clip: core/lifecycle/moderate.ts. Tests: test/moderation.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { invalidField } from '../../core/clips/clip-fields.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import { findClip } from '../../core/clips/clips.store.ts'
import { moderate } from '../../core/lifecycle/moderate.ts'
import { listModerations, type Moderation } from '../../core/reports/moderations.store.ts'
import { cleanNote } from '../../core/reports/report-fields.ts'
import { type FoundReport, findReport, findWholeReport, listReports } from '../../core/reports/reports.store.ts'
import { MODERATION_ACTIONS, MODERATION_ORIGINS, REPORT_REASONS } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf, requireToken } from '../../http/authenticate.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, orNull, Time, tokenRoute } from '../../http/shapes.ts'

/** Decisions about one clip that are shown. */
const MAX_SHOWN = 100

const ReasonShape = Type.Enum(REPORT_REASONS, { title: 'ReportReason' })
const ActionShape = Type.Enum(MODERATION_ACTIONS, { title: 'ModerationAction' })
const Note = Type.Optional(orNull(Type.String({ description: 'Up to 1000 characters.' })))

const ReportShape = Type.Object(
  {
    id: Type.String(),
    clip: Type.Object({
      id: Type.String(),
      page: Type.String(),
      title: orNull(Type.String()),
      state: Type.Enum(['processing', 'ready', 'failed', 'hidden', 'deleted']),
      nsfw: Type.Boolean(),
      visibility: Type.Enum(['public', 'unlisted', 'private']),
      token_id: orNull(Type.String()),
    }),
    reason: ReasonShape,
    text: orNull(Type.String()),
    email: orNull(Type.String()),
    state: Type.Enum(['open', 'closed']),
    created_at: Time,
    decision: orNull(
      Type.Object({
        action: ActionShape,
        note: orNull(Type.String()),
        token_id: orNull(Type.String()),
        created_at: Time,
      }),
    ),
  },
  { title: 'Report' },
)

const DecisionShape = Type.Object(
  {
    action: ActionShape,
    origin: Type.Enum(MODERATION_ORIGINS, {
      description: 'A moderator, a command of the operator, the number of reports, or the scanner.',
    }),
    reason: orNull(Type.String()),
    note: orNull(Type.String()),
    token_id: orNull(Type.String({ description: 'Token of the moderator.' })),
    operator: orNull(Type.String({ description: 'Account of the machine on which a command decided.' })),
    created_at: Time,
  },
  { title: 'Moderation' },
)
const DecisionsShape = Type.Object({ items: Type.Array(DecisionShape) })

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

export const moderationRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { baseUrl } = deps.config.site
  requireToken(app, deps, { scope: 'admin' })
  app.addHook('onRequest', async (request, reply) => {
    await deps.limits.count(request, reply, 'read')
    reply.header('cache-control', 'no-store')
  })

  app.get(
    '/reports',
    {
      schema: {
        ...tokenRoute('moderation', 'listReports', 'Reports of visitors, newest first'),
        querystring: Type.Object({
          ...pageQuery,
          state: Type.Optional(Type.Enum(['open', 'closed'], { description: 'Both if absent.' })),
        }),
        response: answers(200, pageOf(ReportShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { state, limit: requestedLimit } = request.query
      const { after, limit } = readPage(request.query, isUuid)
      const { items, nextCursor } = cutPage(await listReports(deps.db, state, { after, limit: limit + 1 }), limit)
      if (nextCursor) {
        reply.header('link', linkToNext(baseUrl, '/reports', { limit: requestedLimit, state, cursor: nextCursor }))
      }
      return { success: { items: items.map((report) => describeReport(report, baseUrl)), next_cursor: nextCursor } }
    },
  )

  app.post<WithId & { Body: { action: (typeof REPORT_ACTIONS)[number]; note?: string | null } }>(
    '/reports/:id',
    {
      schema: {
        ...tokenRoute('moderation', 'decideReport', 'Decides a report, and with it all open ones of the clip'),
        description: '`dismiss` closes this report alone.',
        ...withId,
        body: Type.Object({ action: Type.Enum(REPORT_ACTIONS), note: Note }),
        response: answers(200, ReportShape, [400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429]),
      },
      preValidation: async ({ body }) => {
        const action = (body as { action?: unknown } | null)?.action
        if (!OF_CLIPS_ALONE.some((known) => known === action)) return
        const actions = inWords(REPORT_ACTIONS, 'or')
        throw invalidField('action', `must be ${actions}; POST /media/{id}/moderation takes ${action}`)
      },
    },
    async (request) => {
      const { id } = request.params
      const { action, note } = request.body
      const report = isUuid(id) ? await findReport(deps.db, id) : undefined
      if (!report) throw apiError('not_found')
      const decision = { action, note: cleanNote(note), ...adminOf(request) }
      await moderate(deps, { clipId: report.clipId, reportId: id }, decision)
      const decided = await findWholeReport(deps.db, id)
      if (!decided) throw apiError('not_found')
      return { success: describeReport(decided, baseUrl) }
    },
  )

  app.get<WithId>(
    '/media/:id/moderation',
    {
      schema: {
        ...tokenRoute('moderation', 'listDecisions', `The latest ${MAX_SHOWN} decisions about a clip`),
        ...withId,
        response: answers(200, DecisionsShape, [401, 403, 404, 429]),
      },
    },
    async (request) => ({ success: { items: await decisionsOf(await requireKnown(request.params.id)) } }),
  )

  app.post<
    WithId & {
      Body: {
        action: (typeof CLIP_ACTIONS)[number]
        reason?: (typeof REPORT_REASONS)[number] | null
        note?: string | null
      }
    }
  >(
    '/media/:id/moderation',
    {
      schema: {
        ...tokenRoute('moderation', 'moderateMedia', 'Takes a clip down, or undoes that'),
        description: '`block` deletes all clips of the same bytes, of any token, and refuses these bytes from now on.',
        ...withId,
        body: Type.Object({
          action: Type.Enum(CLIP_ACTIONS),
          reason: Type.Optional(orNull(ReasonShape, { description: 'Shown to the owner of a hidden clip.' })),
          note: Note,
        }),
        response: answers(200, DecisionsShape, [400, 401, 403, 404, 408, 410, 413, 415, 422, 429]),
      },
    },
    async (request) => {
      const { action, reason, note } = request.body
      const clipId = await requireKnown(request.params.id)
      const decision = { action, reason: reason ?? undefined, note: cleanNote(note) }
      await moderate(deps, { clipId }, { ...decision, ...adminOf(request) })
      return { success: { items: await decisionsOf(clipId) } }
    },
  )

  const decisionsOf = (clipId: string): Promise<Moderation[]> => listModerations(deps.db, clipId, MAX_SHOWN)

  /** A tombstone is known, too: its bytes may be blocked. */
  async function requireKnown(id: string): Promise<string> {
    if (!isClipId(id) || !(await findClip(deps.db, id, deps.now()))) throw apiError('not_found')
    return id
  }
}

const REPORT_ACTIONS = ['dismiss', 'nsfw', 'hide', 'delete', 'block'] as const
const CLIP_ACTIONS = ['nsfw', 'safe', 'hide', 'unhide', 'delete', 'block', 'unblock'] as const
/** Acts that undo another, for which a clip needs no report. */
const OF_CLIPS_ALONE = CLIP_ACTIONS.filter((action) => !REPORT_ACTIONS.some((known) => known === action))

function describeReport(report: FoundReport, baseUrl: string) {
  const { id, clipId, title, nsfw, visibility, tokenId, sourceState, hiddenAt, action, decidedAt } = report
  const state = sourceState === null ? 'deleted' : hiddenAt ? 'hidden' : sourceState
  return {
    id,
    clip: { id: clipId, page: `${baseUrl}/gif/${clipId}`, title, state, nsfw, visibility, token_id: tokenId },
    reason: report.reason,
    text: report.text,
    email: report.email,
    state: report.state,
    created_at: report.createdAt,
    decision:
      action === null || decidedAt === null
        ? null
        : { action, note: report.note, token_id: report.moderatorId, created_at: decidedAt },
  } as const
}
