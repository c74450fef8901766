// Queue, webhooks, storage, settings and the audit log. Tests: tokens.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import { type Static, Type } from 'typebox'
import { listAllWebhooks } from '../../../core/administration/all-webhooks.store.ts'
import { deleteDeadLetter, listDeadLetters, retryDeadLetter } from '../../../core/administration/dead-letters.ts'
import { readQueue } from '../../../core/administration/queue-state.ts'
import { showSettings } from '../../../core/administration/shown-settings.ts'
import { beginCheck, readStorage } from '../../../core/administration/storage.ts'
import { readAudit } from '../../../core/audit/read-audit.ts'
import { AUDIT_ACTIONS } from '../../../db/tables.ts'
import { isUuid } from '../../../db/uuid.ts'
import { type Deps, SCHEMA } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { adminOf } from '../../../http/authenticate.ts'
import { cutPage, readPage } from '../../../http/cursor.ts'
import { doneNotice, leadBack, sendAdminPage, viewOf } from './admin-page.http.ts'
import { auditPage, queuePage, settingsPage, storagePage, webhooksPage } from './service-pages.ts'

const PER_PAGE = 50

const Text = Type.Optional(Type.String({ maxLength: 300 }))
const Query = Type.Object({ cursor: Text, done: Text })
const WebhooksQuery = Type.Object({ cursor: Text, failing: Text })
const AuditQuery = Type.Object({ cursor: Text, token: Text, action: Text, subject: Text, from: Text, to: Text })
const DeadBody = Type.Object({ form_token: Type.String(), act: Type.Enum(['retry', 'delete'] as const) })

export const adminServiceRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db } = deps

  app.get('/admin/queue', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const view = viewOf(deps, request)
    const { cursor, done } = request.query
    const names = SCHEMA.queues.map(({ name }) => name)
    const [state, dead] = await Promise.all([
      readQueue(deps, names),
      listDeadLetters(deps, { cursor, limit: PER_PAGE }),
    ])
    return sendAdminPage(deps, request, reply, {
      section: 'queue',
      body: html`${doneNotice(view, done)}${queuePage(view, { state, dead, cursor })}`,
    })
  })

  app.post<{ Params: { id: string }; Body: { act: 'retry' | 'delete' } }>(
    '/admin/queue/:id',
    { schema: { hide: true, params: Type.Object({ id: Type.String() }), body: DeadBody } },
    async (request, reply) => {
      const { id } = request.params
      const isRetry = request.body.act === 'retry'
      const work = isRetry ? retryDeadLetter : deleteDeadLetter
      if (!isUuid(id) || !(await work(deps, adminOf(request), id))) throw apiError('not_found')
      return leadBack(deps, reply, '/admin/queue', { done: isRetry ? 'retried' : 'deleted' })
    },
  )

  app.get('/admin/webhooks', { schema: { hide: true, querystring: WebhooksQuery } }, async (request, reply) => {
    const { cursor, failing } = request.query
    const isFailing = failing === '1'
    const { after } = readPage({ cursor }, isUuid)
    const rows = await listAllWebhooks(db, { isFailing }, { after, limit: PER_PAGE + 1 })
    const { items: webhooks, nextCursor } = cutPage(rows, PER_PAGE)
    return sendAdminPage(deps, request, reply, {
      section: 'webhooks',
      body: webhooksPage(viewOf(deps, request), { webhooks, isFailing, cursor, nextCursor }),
    })
  })

  app.get('/admin/storage', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const view = viewOf(deps, request)
    const body = html`${doneNotice(view, request.query.done)}${storagePage(view, await readStorage(deps))}`
    return sendAdminPage(deps, request, reply, { section: 'storage', body })
  })

  app.post('/admin/storage/check', { schema: { hide: true } }, async (request, reply) => {
    await beginCheck(deps, adminOf(request))
    return leadBack(deps, reply, '/admin/storage', { done: 'check' })
  })

  app.get('/admin/settings', { schema: { hide: true } }, async (request, reply) =>
    sendAdminPage(deps, request, reply, {
      section: 'settings',
      body: settingsPage(viewOf(deps, request), showSettings(deps)),
    }),
  )

  app.get('/admin/audit', { schema: { hide: true, querystring: AuditQuery } }, async (request, reply) => {
    const { query } = request
    const found = await findEntries(query)
    return sendAdminPage(deps, request, reply, {
      section: 'audit',
      body: auditPage(viewOf(deps, request), { ...found, query }),
    })
  })

  /** Fields of a form are empty where nothing was typed. A filter that is no filter leaves the page with its words. */
  async function findEntries({ action, cursor, ...fields }: Static<typeof AuditQuery>) {
    const typed = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
    try {
      const known = AUDIT_ACTIONS.find((name) => name === action)
      const place = readPage({ cursor }, isUuid)
      const { items, nextCursor } = cutPage(await readAudit(db, { ...typed, action: known }, place), place.limit)
      return { entries: items, nextCursor, problem: undefined }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'invalid_field') throw error
      return { entries: [], nextCursor: null, problem: error.message }
    }
  }
}
