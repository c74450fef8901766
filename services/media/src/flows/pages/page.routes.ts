import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { withHeaders } from '@services/common/http/route-schema'
import { serveAssets } from '@services/common/pages/serve-assets'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery } from '../../core/clip-access/share-links.ts'
import { type ClipView, toView } from '../../core/clip-views/clip-view.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import type { Deps } from '../../deps.ts'
import { apiError, ERRORS_PATH, errorCatalogue } from '../../errors.ts'
import { acceptsHtml } from '../../http/accepts-html.ts'
import { recordView } from '../../http/record-view.ts'
import { errorResponses, HtmlPage, linkQuery, PageOrError } from '../../http/shapes.ts'
import { clipPage, type Missing, missingPage } from './clip-page.ts'
import { deletePage } from './delete-page.ts'
import { assets, type Page } from './document.ts'
import { embedPage, missingEmbed } from './embed-page.ts'
import { errorsPage } from './errors-page.ts'
import { sendPage, sendUnlessKnown } from './send-page.http.ts'

/** Files at addresses without a version: pages of other sites load them, and browsers without a link to the icon. */
const LASTING = { '/embed.js': 'embed.js', '/favicon.svg': 'favicon.svg', '/favicon.ico': 'favicon.svg' }

const pageResponses = {
  200: withHeaders(HtmlPage, 'ETag'),
  304: withHeaders(Type.Null(), 'ETag'),
  404: PageOrError,
  410: PageOrError,
  451: PageOrError,
}

/** Pages for visitors: no token, no cookies, and only the scripts of assets/ and of the embed. */
export const pageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  const scriptUrl = `${site.baseUrl}/embed.js`
  const about = { siteName: site.name, siteUrl: `${site.baseUrl}/` }

  app.get(ERRORS_PATH, { schema: { hide: true } }, async (_request, reply) =>
    sendPage(reply, errorsPage(site, errorCatalogue), 'public, max-age=3600'),
  )

  addClipPage(
    '/gif/:id',
    { operationId: 'getPage', summary: 'The page of a clip', target: 'page' },
    clipPage,
    missingPage,
  )
  const embed = (view: ClipView) => embedPage(view, { scriptUrl })
  addClipPage(
    '/embed/:id',
    { operationId: 'getEmbed', summary: 'The player, for frames', target: 'embed' },
    embed,
    missingEmbed,
  )

  // No look-up: the token decides, which only the browser has.
  app.get<WithId>('/gif/:id/delete', { schema: { hide: true } }, async ({ params: { id } }, reply) => {
    if (!isClipId(id)) throw apiError('not_found')
    return sendPage(reply, deletePage(site, id), 'no-store')
  })

  serveAssets(app, '/assets/', assets)
  for (const [path, name] of Object.entries(LASTING)) {
    app.get(path, { schema: { hide: true } }, async (_request, reply) => {
      const file = assets.find(name)
      if (!file) return reply.callNotFound()
      return reply
        .headers({ 'cache-control': 'public, max-age=86400', 'cross-origin-resource-policy': 'cross-origin' })
        .type(file.type)
        .send(file.body)
    })
  }
  app.get('/robots.txt', { schema: { hide: true } }, async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=86400').type('text/plain; charset=utf-8').send(ROBOTS),
  )

  function addClipPage(
    url: string,
    { target, ...described }: { operationId: string; summary: string; target: 'page' | 'embed' },
    show: (view: ClipView) => Page,
    missing: (about: Missing) => Page,
  ): void {
    const schema = {
      ...described,
      tags: ['pages'],
      params: Type.Object({ id: Type.String() }),
      querystring: Type.Object(linkQuery),
      requestHeaders: ['If-None-Match'],
      response: { ...pageResponses, ...errorResponses(429) },
    }
    app.get<WithId>(url, { schema }, async (request, reply) => {
      reply.header('vary', 'Accept')
      const view = await findView(request, target)
      if (!(view instanceof ApiError)) {
        const sent = sendUnlessKnown(request, reply, show(view), view)
        if (view.state === 'ready') recordView(deps, request, reply, { clipId: request.params.id, kind: target })
        return sent
      }
      return sendPage(reply.code(view.status), missing({ ...about, message: view.message }), 'no-store')
    })
  }

  /** Throws failures for programs, and returns them for browsers, which get a page. */
  async function findView(
    { params, headers, query }: FastifyRequest<WithId>,
    target: 'page' | 'embed',
  ): Promise<ClipView | ApiError> {
    try {
      const { clip, link } = await findShownClip(deps, params.id, { target, query })
      deps.visitLog.record(clip)
      return toView(clip, site, link)
    } catch (error) {
      if (error instanceof ApiError && acceptsHtml({ headers })) return error
      throw error
    }
  }
}

type WithId = { Params: { id: string }; Querystring: LinkQuery }

/** Crawlers may not read the API. The longest rule wins, in old crawlers the first (RFC 9309 2.2.2). */
const ROBOTS = `User-agent: *
Allow: /$
Allow: /gif/
Allow: /a/
Allow: /embed/
Allow: /embed.js
Allow: /assets/
Allow: /f/
Allow: /v/
Allow: /oembed
Allow: /docs
Allow: /favicon
Disallow: /
`
