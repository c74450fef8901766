// Reports and clips of any token, and the decisions about them. Tests: decisions.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import { button, field, hiddenFields } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { findJudgedClips, findJudgedIds } from '../../../core/administration/judged-clips.store.ts'
import { isClipId } from '../../../core/clips/clip-id.ts'
import { moderate } from '../../../core/lifecycle/moderate.ts'
import { readOwnClips } from '../../../core/lists/read-list.ts'
import { listModerations, listModerationsOf } from '../../../core/reports/moderations.store.ts'
import { findReport, listReports } from '../../../core/reports/reports.store.ts'
import { MODERATION_ACTIONS, SOURCE_STATES } from '../../../db/tables.ts'
import { isUuid } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { adminOf } from '../../../http/authenticate.ts'
import { cutPage, readPage } from '../../../http/cursor.ts'
import { visitorOf } from '../visitor.http.ts'
import { backTo, doneNotice, leadBack, pager, pathWith, sendAdminPage, viewOf } from './admin-page.http.ts'
import { clipCard, type JudgedClip, undoForm } from './clip-card.ts'

const PER_PAGE = 20
/** Decisions about a clip that are shown. */
const MOST_DECISIONS = 10
/** Span in which a page speaks of the decision that it comes from. */
const JUST_MS = 10 * 60_000

const Text = Type.Optional(Type.String({ maxLength: 300 }))
const ReportsQuery = Type.Object({ state: Text, cursor: Text, done: Text, clip: Text })
const ClipsQuery = Type.Object({ q: Text, token: Text, state: Text, cursor: Text, done: Text, clip: Text })

const DecideBody = Type.Object({
  form_token: Type.String(),
  action: Type.Enum(MODERATION_ACTIONS),
  clip: Type.String(),
  report: Type.Optional(Type.String()),
  back: Type.Optional(Type.String()),
})

export const judgeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, now } = deps

  app.get('/admin', { schema: { hide: true, querystring: ReportsQuery } }, async (request, reply) => {
    const view = viewOf(deps, request)
    const { words } = view
    const { cursor } = request.query
    const state = request.query.state === 'closed' ? 'closed' : 'open'
    const { after } = readPage({ cursor }, isUuid)
    const found = await listReports(db, state, { after, limit: PER_PAGE + 1 })
    const { items, nextCursor } = cutPage(found, PER_PAGE)
    const clips = await judged([...new Set(items.map(({ clipId }) => clipId))])
    const back = pathWith('/admin', { state: state === 'closed' ? state : undefined, cursor })
    const tab = (name: 'open' | 'closed') =>
      html`<a href="${view.baseUrl}/admin${name === 'closed' && '?state=closed'}"${name === state && html` aria-current="true"`}>${words[name]}</a>\n`
    return sendAdminPage(deps, request, reply, {
      section: 'reports',
      body: html`${await justDecided(request, request.query, back)}<p class="tabs">${tab('open')}${tab('closed')}</p>
${items.length > 0 && state === 'open' && html`<p class="hint scripted">${words.keys}</p>\n`}${items.map((report) => {
  const about = clips.get(report.clipId)
  return about && clipCard(view, about, back, report)
})}${items.length === 0 && html`<p class="empty">${state === 'open' ? words.noReports : words.noClosed}</p>\n`}${pager(view, '/admin', { state: state === 'closed' ? state : undefined, cursor }, nextCursor)}`,
    })
  })

  app.get('/admin/clips', { schema: { hide: true, querystring: ClipsQuery } }, async (request, reply) => {
    const view = viewOf(deps, request)
    const { words, baseUrl } = view
    const { q = '', token = '', cursor } = request.query
    const { ids, nextCursor, problem } = await find(request.query)
    const clips = await judged(ids)
    const back = pathWith('/admin/clips', { q, token, state: request.query.state, cursor })
    return sendAdminPage(deps, request, reply, {
      section: 'clips',
      body: html`${await justDecided(request, request.query, back)}<form method="get" action="${baseUrl}/admin/clips" class="filters" role="search">
${field({ name: 'q', label: words.searchLabel, hint: words.searchHint, value: q, maxlength: 200 })}${field({ name: 'token', label: words.tokenId, hint: words.tokenHint, value: token, maxlength: 36 })}${request.query.state && hiddenFields({ state: request.query.state })}${button({ label: words.search })}</form>
${problem && notice('problem', words.badSearch)}${ids.flatMap((id) => {
  const about = clips.get(id)
  return about ? [clipCard(view, about, back)] : []
})}${clips.size === 0 && !problem && html`<p class="empty">${words.noClips}</p>\n`}${pager(view, '/admin/clips', { q, token, state: request.query.state, cursor }, nextCursor)}`,
    })

    /** Finds clips by id or hash, else by words. */
    async function find(asked: { q?: string; token?: string; state?: string; cursor?: string }) {
      const text = (asked.q ?? '').trim()
      const named = isClipId(text) || /^[\da-f]{64}$/i.test(text) ? await findJudgedIds(db, text, PER_PAGE) : []
      if (named.length > 0 || /^[\da-f]{64}$/i.test(text)) return { ids: named, nextCursor: null }
      const state = SOURCE_STATES.find((known) => known === asked.state)
      const words = {
        ...(text && { q: text }),
        ...(asked.token && { token: asked.token.trim() }),
        ...(state && { state }),
      }
      try {
        const query = { ...words, cursor: asked.cursor, limit: PER_PAGE }
        const { clips: listed, nextCursor } = await readOwnClips(deps, visitorOf(request).token, query)
        return { ids: listed.map(({ id }) => id), nextCursor }
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'invalid_field') throw error
        return { ids: [], nextCursor: null, problem: true }
      }
    }
  })

  app.post('/admin/decide', { schema: { hide: true, body: DecideBody } }, async (request, reply) => {
    const { action, clip: clipId, report: reportId, back } = request.body
    if (!isClipId(clipId)) throw apiError('not_found')
    if (reportId !== undefined) {
      const report = isUuid(reportId) ? await findReport(db, reportId) : undefined
      if (report?.clipId !== clipId) throw apiError('not_found')
    } else if (action === 'dismiss') throw apiError('not_found')
    const about = { clipId, ...(reportId && { reportId }) }
    await moderate(deps, about, { action, note: null, ...adminOf(request) })
    return leadBack(deps, reply, backTo(back), { done: action, clip: clipId })
  })

  /** Says what was decided, with its reverse, if it was: the address of the page alone proves neither. */
  async function justDecided(request: FastifyRequest, { done, clip }: Static<typeof ReportsQuery>, back: string) {
    const [newest] = clip && isClipId(clip) ? await listModerations(db, clip, 1) : []
    if (!newest || newest.action !== done || newest.token_id !== visitorOf(request).token.id) return html``
    if (newest.created_at.getTime() <= now().getTime() - JUST_MS) return html``
    const view = viewOf(deps, request)
    return doneNotice(view, done, undoForm(view, newest, back))
  }

  async function judged(ids: readonly string[]): Promise<Map<string, JudgedClip>> {
    const [clips, decisions] = await Promise.all([
      findJudgedClips(db, ids, now()),
      listModerationsOf(db, ids, MOST_DECISIONS),
    ])
    return new Map(clips.map((clip) => [clip.id, { ...clip, decisions: decisions.get(clip.id) ?? [] }]))
  }
}
