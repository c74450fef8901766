import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/documented'
import { ApiError } from '@services/common/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ClipView } from '../../core/clips/clip-view.ts'
import { findPublicClip } from '../../core/clips/find-public-clip.ts'
import { toView } from '../../core/clips/result.ts'
import type { Deps } from '../../deps.ts'
import { ERRORS_PATH, errorCatalogue } from '../../errors.ts'
import { isKnown } from '../../http/etag.ts'
import { errorResponses, HtmlPage, PageOrError } from '../../http/shapes.ts'
import { CLIP_SCRIPT, clipPage, clipPagePolicy } from './clip-page.ts'
import { EMBED_SCRIPT, embedPage, embedPagePolicy } from './embed-page.ts'
import { errorsPage, errorsPagePolicy } from './errors-page.ts'
import { HOME_SCRIPT, homePage, homePagePolicy } from './home-page.ts'
import { ICON, ICON_PATHS } from './icon.ts'
import { missingEmbed, missingEmbedPolicy, missingPage, missingPagePolicy } from './missing-page.ts'

const Params = Type.Object({ id: Type.String() })

const pageResponses = {
  200: withHeaders(HtmlPage, 'ETag'),
  304: withHeaders(Type.Null(), 'ETag'),
  404: PageOrError,
  410: PageOrError,
}

/** Pages for people: no token, no cookies, and only the scripts of assets/ and of the embed. */
export const pageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  const scriptUrl = `${site.baseUrl}/embed.js`
  const about = { siteName: site.name, siteUrl: `${site.baseUrl}/` }

  /** Throws failures for programs, and returns them for browsers, which get a page. */
  async function findView({ params, headers }: FastifyRequest<{ Params: { id: string } }>) {
    try {
      return toView(await findPublicClip(deps.db, params.id), site)
    } catch (error) {
      if (error instanceof ApiError && ACCEPTS_HTML.test(headers.accept ?? '')) return error
      throw error
    }
  }

  app.get('/', { schema: { hide: true } }, async (_request, reply) =>
    sendPage(reply, {
      html: homePage(site, { ...deps.config.source, needsToken: deps.config.uploadNeedsToken }),
      policy: homePagePolicy(site),
      cache: 'public, max-age=300',
    }),
  )

  app.get('/home.js', { schema: { hide: true } }, async (_request, reply) => sendScript(reply, HOME_SCRIPT.text))
  app.get('/clip.js', { schema: { hide: true } }, async (_request, reply) => sendScript(reply, CLIP_SCRIPT.text))

  app.get(ERRORS_PATH, { schema: { hide: true } }, async (_request, reply) =>
    sendPage(reply, {
      html: errorsPage(site, errorCatalogue),
      policy: errorsPagePolicy(site),
      cache: 'public, max-age=3600',
    }),
  )

  app.get(
    '/gif/:id',
    {
      schema: {
        operationId: 'getPage',
        tags: ['pages'],
        summary: 'The page of a clip',
        params: Params,
        requestHeaders: ['If-None-Match'],
        response: { ...pageResponses, ...errorResponses(429) },
      },
    },
    async (request, reply) => {
      reply.header('vary', 'Accept')
      const view = await findView(request)
      if (view instanceof ApiError) {
        const html = missingPage({ ...about, message: view.message })
        return sendPage(reply.code(view.status), { html, policy: missingPagePolicy(about.siteUrl), cache: 'no-store' })
      }
      reply.code(statusOf(view))
      const page = { html: clipPage(view), policy: clipPagePolicy(view), cache: cacheOf(view) }
      return sendUnlessKnown(request, reply, page)
    },
  )

  app.get(
    '/embed/:id',
    {
      schema: {
        operationId: 'getEmbed',
        tags: ['pages'],
        summary: 'The player, for frames',
        params: Params,
        requestHeaders: ['If-None-Match'],
        response: { ...pageResponses, ...errorResponses(429) },
      },
    },
    async (request, reply) => {
      reply.header('vary', 'Accept')
      const view = await findView(request)
      if (view instanceof ApiError) {
        const html = missingEmbed({ ...about, message: view.message })
        return sendPage(reply.code(view.status), { html, policy: missingEmbedPolicy(about.siteUrl), cache: 'no-store' })
      }
      const page = {
        html: embedPage(view, { scriptUrl }),
        policy: embedPagePolicy(view, scriptUrl),
        cache: cacheOf(view),
      }
      reply.code(statusOf(view))
      return sendUnlessKnown(request, reply, page)
    },
  )

  app.get('/embed.js', { schema: { hide: true } }, async (_request, reply) => sendScript(reply, EMBED_SCRIPT))

  for (const path of ICON_PATHS) {
    app.get(path, { schema: { hide: true } }, async (_request, reply) =>
      reply
        .headers({ 'cache-control': 'public, max-age=86400', 'cross-origin-resource-policy': 'cross-origin' })
        .type('image/svg+xml')
        .send(ICON),
    )
  }
  app.get('/robots.txt', { schema: { hide: true } }, async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=86400').type('text/plain; charset=utf-8').send(ROBOTS),
  )
}

/** Accept header of browsers, and hardly any other client. */
const ACCEPTS_HTML = /\btext\/html\b/i

/** The page of a failed clip is a 404: it has no content. */
const statusOf = ({ state }: ClipView) => (state === 'failed' ? 404 : 200)

/** Unlike files, pages change and are deleted: caches keep them, and revalidate each time. */
const cacheOf = ({ state }: ClipView) => (state === 'ready' ? 'public, no-cache' : 'no-store')

interface Page {
  html: string
  policy: string
  cache: string
}

/** Sets the page's headers on a 304, too: caches update the headers of their copy with them (RFC 9111 4.3.4). */
function sendUnlessKnown(request: FastifyRequest, reply: FastifyReply, page: Page) {
  describePage(reply, page)
  const isSame = reply.statusCode === 200 && page.cache !== 'no-store' && isKnown(request, reply, page.html)
  return isSame ? reply.code(304).send() : reply.send(page.html)
}

const sendPage = (reply: FastifyReply, page: Page) => describePage(reply, page).send(page.html)

const describePage = (reply: FastifyReply, { policy, cache }: Page) =>
  reply
    .headers({
      'cache-control': cache,
      'content-security-policy': policy,
      'referrer-policy': 'strict-origin-when-cross-origin',
    })
    .type('text/html; charset=utf-8')

const sendScript = (reply: FastifyReply, script: string) =>
  reply
    .headers({ 'cache-control': 'public, max-age=86400', 'cross-origin-resource-policy': 'cross-origin' })
    .type('text/javascript; charset=utf-8')
    .send(script)

/** Crawlers may not read the API. The longest rule wins, in old crawlers the first (RFC 9309 2.2.2). */
const ROBOTS = `User-agent: *
Allow: /$
Allow: /gif/
Allow: /embed/
Allow: /embed.js
Allow: /clip.js
Allow: /home.js
Allow: /f/
Allow: /oembed
Allow: /docs
Allow: /favicon
Disallow: /
`
