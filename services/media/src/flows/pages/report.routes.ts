// The form by which visitors report a clip. The answer to a report is the same for every clip, known or not, so that it
// reveals nothing. No cookie is read: a form on the page of another site can do no more than its sender could.
// Tests: test/reports.test.ts, test/endpoints/report-endpoint.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { readTrustedHeader } from '@services/common/http/client-address'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery } from '../../core/clip-access/share-links.ts'
import { toView } from '../../core/clip-views/clip-view.ts'
import { cleanReport, MAX_TEXT } from '../../core/reports/report-fields.ts'
import { reporterOf } from '../../core/reports/reporter.ts'
import { REPORT_REASONS } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { acceptsHtml } from '../../http/accepts-html.ts'
import { acceptSmallForms } from '../../http/body-parsers.ts'
import { errorResponses, HtmlPage, linkQuery, PageOrError } from '../../http/shapes.ts'
import { missingPage } from './clip-page.ts'
import type { Page } from './document.ts'
import { fileReport } from './file-report.ts'
import { reportPage, thanksPage } from './report-page.ts'

/** A thousand characters in the encoding of a form, and the other fields. */
const MAX_BODY_BYTES = 32 * 1024

const DAY_SECONDS = 86_400
const PER_ADDRESS = { points: 5, seconds: DAY_SECONDS }
/** Reports of all callers of unknown address: bounds the table, and few would send more in good faith. */
const OF_UNKNOWN = { points: 500, seconds: DAY_SECONDS }

const Body = Type.Object({
  reason: Type.String(inDocument({ enum: [...REPORT_REASONS] })),
  text: Type.Optional(Type.String({ description: `Details, up to ${MAX_TEXT} characters.` })),
  email: Type.Optional(Type.String({ description: 'Address for questions of the operator.' })),
})

const ReceivedShape = Type.Object({ success: Type.Object({ received: Type.Boolean() }) })
const Received = Type.Unsafe<object | string>({
  content: { 'application/json': { schema: ReceivedShape }, 'text/html': { schema: Type.String() } },
})

export type WithId = { Params: { id: string }; Querystring: LinkQuery }

export const reportRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site, limits } = deps.config
  acceptSmallForms(app, MAX_BODY_BYTES)
  const withId = { params: Type.Object({ id: Type.String() }), querystring: Type.Object(linkQuery) }

  app.get<WithId>(
    '/gif/:id/report',
    {
      schema: {
        operationId: 'getReportForm',
        tags: ['pages'],
        summary: 'The form to report a clip',
        ...withId,
        response: { 200: HtmlPage, 404: PageOrError, 410: PageOrError, 451: PageOrError, ...errorResponses(429) },
      },
    },
    (request, reply) =>
      asPage(request, reply, async () => {
        requireEnabled()
        const { id } = request.params
        const { clip, link } = await findShownClip(deps, id, { target: 'page', query: request.query })
        return sendPage(reply, reportPage(toView(clip, site, link), site))
      }),
  )

  app.post<WithId & { Body: Type.Static<typeof Body> }>(
    '/gif/:id/report',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'reportClip',
        tags: ['pages'],
        summary: 'Reports a clip to the operator',
        description: 'Takes JSON and forms. The answer is the same for every clip, known or unknown.',
        ...withId,
        body: Body,
        response: {
          ...{ 202: Received, ...errorResponses(400, 408, 413, 415) },
          ...{ 404: PageOrError, 422: PageOrError, 429: PageOrError },
        },
      },
      // A browser gets a page for a field that is absent, too.
      preValidation: async (request) => {
        request.body = Object.assign({ reason: '' }, request.body)
      },
    },
    (request, reply) =>
      asPage(request, reply, async () => {
        requireEnabled()
        const fields = cleanReport(request.body)
        const address = limits.header ? readTrustedHeader(request, limits.header)?.limitKey : undefined
        const reporter = address === undefined ? null : await reporterOf(deps, address)
        if (reporter) await deps.limits.countKey('report', PER_ADDRESS, reporter.toString('base64url'))
        else await deps.limits.countKey('report', OF_UNKNOWN, 'all')
        await fileReport(deps, { clipId: request.params.id, query: request.query, reporter, fields })
        reply.code(202).header('vary', 'Accept')
        if (acceptsHtml(request)) return sendPage(reply, thanksPage(site))
        return reply.header('cache-control', 'no-store').send({ success: { received: true } })
      }),
  )

  function requireEnabled(): void {
    if (!site.takesReports) throw apiError('not_found')
  }

  /** Refusals are pages for browsers. */
  async function asPage(request: FastifyRequest, reply: FastifyReply, answer: () => Promise<unknown>) {
    try {
      return await answer()
    } catch (error) {
      if (!(error instanceof ApiError) || !acceptsHtml(request) || error.status >= 500) throw error
      reply.code(error.status).header('vary', 'Accept')
      if (error.retryAfterSeconds) reply.header('retry-after', error.retryAfterSeconds)
      return sendPage(reply, missingPage({ message: error.message, siteName: site.name, siteUrl: `${site.baseUrl}/` }))
    }
  }
}

/** The address of a private clip is a key: no site that the page leads to may see it. */
const sendPage = (reply: FastifyReply, { html, policy }: Page) =>
  reply
    .headers({
      'cache-control': 'no-store',
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex',
    })
    .type('text/html; charset=utf-8')
    .send(html)
