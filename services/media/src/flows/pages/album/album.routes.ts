// An album for visitors: /a/{id}, its player and its feed. Nothing of it counts as a view but the clip in the player.
// Its oEmbed: oembed.routes.ts. Tests: beside this file.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { findShownAlbum, type ShownAlbum, toItemView } from '../../../core/albums/find-public-album.ts'
import {
  findCover,
  findShownPlace,
  isCover,
  listNewestItems,
  listShownItems,
  type Position,
} from '../../../core/albums/shown-items.store.ts'
import type { LinkQuery } from '../../../core/clip-access/share-links.ts'
import { isClipId } from '../../../core/clips/clip-id.ts'
import type { Clip } from '../../../core/clips/clips.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { acceptsHtml } from '../../../http/accepts-html.ts'
import { isKnown } from '../../../http/etag.ts'
import { recordView } from '../../../http/record-view.ts'
import { errorResponses, HtmlPage, linkQuery, PageOrError } from '../../../http/shapes.ts'
import { type Language, languageOf } from '../../../words/language.ts'
import type { Page } from '../document.ts'
import { sendPage, sendUnlessKnown } from '../send-page.http.ts'
import { albumEmbed, missingAlbumEmbed } from './album-embed.ts'
import { albumFeed } from './album-feed.ts'
import { albumPage, missingAlbum } from './album-page.ts'
import { toAlbumView, withMember } from './album-view.ts'

/** Clips of a page: full rows of 2 to 6. */
const ITEMS_PER_PAGE = 60

const FEED_ITEMS = 50

const FeedAnswer = Type.Unsafe<string>({ content: { 'application/atom+xml': { schema: Type.String() } } })

const { e, s } = linkQuery

interface WithId {
  Params: { id: string }
  Querystring: LinkQuery & { after?: unknown; at?: unknown }
}

export const albumPageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  const about = { siteName: site.name, siteUrl: `${site.baseUrl}/` }

  const described = (operationId: string, summary: string) => ({
    ...{ operationId, summary, tags: ['pages'], requestHeaders: ['If-None-Match'] },
    params: Type.Object({ id: Type.String() }),
  })
  const pageResponses = {
    200: withHeaders(HtmlPage, 'ETag'),
    304: withHeaders(Type.Null(), 'ETag'),
    404: PageOrError,
    ...errorResponses(429),
  }
  const text = (description: string) => Type.Optional(Type.Unknown({ description, ...inDocument({ type: 'string' }) }))

  app.get<WithId>(
    '/a/:id',
    {
      schema: {
        ...described('getAlbumPage', 'The page of an album'),
        querystring: Type.Object({ e, s, after: text('Position of the last clip of the previous page.') }),
        response: pageResponses,
      },
    },
    (request, reply) =>
      asPage(request, reply, missingAlbum, async (language) => {
        const { id } = request.params
        const after = readPosition(request.query.after)
        const now = deps.now()
        const shown = await findShownAlbum(deps, id, { target: 'page', query: request.query }, async (db, album) => {
          const rows = await listShownItems(db, album, { now, limit: ITEMS_PER_PAGE + 1, after })
          const hasMore = rows.length > ITEMS_PER_PAGE
          const cover = rows.find(isCover) ?? (hasMore ? await findCover(db, album, now) : undefined)
          return { rows: rows.slice(0, ITEMS_PER_PAGE), hasMore, cover }
        })
        const album = toAlbumView(shown, site)
        const { rows, hasMore, cover } = shown.found
        const items = rows.map((clip) => viewOf(shown, clip, 'page'))
        const last = hasMore ? rows.at(-1) : undefined
        const addressOf = (position: Position | undefined) =>
          position ? withMember(album.urls.page, 'after', `${position.position}.${position.id}`) : album.urls.page
        const page = albumPage(
          album,
          {
            items,
            cover: cover && viewOf(shown, cover, 'page'),
            url: addressOf(after),
            next: last && addressOf(last),
            isFirst: after === undefined,
          },
          language,
        )
        return sendUnlessKnown(request, reply, page, { ...album, state: 'ready' })
      }),
  )

  app.get<WithId>(
    '/a/:id/embed',
    {
      schema: {
        ...described('getAlbumEmbed', 'The player of an album, for frames'),
        querystring: Type.Object({ e, s, at: text('Clip to show; the first one if it is not in the album.') }),
        response: pageResponses,
      },
    },
    (request, reply) => {
      const missing = (_: typeof about, language: Language) => missingAlbumEmbed(about, { language })
      return asPage(request, reply, missing, async (language) => {
        const { at, ...query } = request.query
        const clipId = typeof at === 'string' && isClipId(at) ? at : undefined
        const shown = await findShownAlbum(deps, request.params.id, { target: 'embed', query }, (db, album) =>
          findShownPlace(db, album, { now: deps.now(), clipId }),
        )
        const album = toAlbumView(shown, site)
        const { found } = shown
        const page = found
          ? albumEmbed(album, { ...found, clip: viewOf(shown, found, 'embed') }, language)
          : missingAlbumEmbed(about, { language, title: album.title })
        const sent = sendUnlessKnown(request, reply, page, { ...album, state: 'ready' })
        if (found) {
          deps.visitLog.record(found)
          recordView(deps, request, reply, { clipId: found.id, kind: 'embed' })
        }
        return sent
      })
    },
  )

  app.get<WithId>(
    '/a/:id/feed.xml',
    {
      schema: {
        ...described('getAlbumFeed', 'The newest clips of a public album, as Atom'),
        response: {
          ...{ 200: withHeaders(FeedAnswer, 'ETag'), 304: withHeaders(Type.Null(), 'ETag') },
          ...errorResponses(404, 429),
        },
      },
    },
    async (request, reply) => {
      const shown = await findShownAlbum(deps, request.params.id, { target: 'page', query: {} }, (db, album) => {
        if (album.visibility !== 'public') throw apiError('not_found')
        return listNewestItems(db, album, { now: deps.now(), limit: FEED_ITEMS })
      })
      const items = shown.found.map((clip) => ({ clip: viewOf(shown, clip, 'page'), addedAt: clip.addedAt }))
      const feed = albumFeed(toAlbumView(shown, site), items, shown.album.updatedAt)
      reply.header('cache-control', 'public, no-cache')
      if (isKnown(request, reply, feed)) return reply.code(304).send()
      return reply.type('application/atom+xml; charset=utf-8').send(feed)
    },
  )

  const viewOf = (shown: ShownAlbum, clip: Clip, target: 'page' | 'embed') =>
    toItemView(deps.config, shown, { clip, target })

  /** Refusals are pages for browsers. */
  async function asPage(
    request: FastifyRequest,
    reply: FastifyReply,
    missing: (site: typeof about, language: Language) => Page,
    answer: (language: Language) => Promise<unknown>,
  ) {
    const language = languageOf(request)
    reply.header('vary', 'Accept, Accept-Language')
    try {
      return await answer(language)
    } catch (error) {
      if (!(error instanceof ApiError) || !acceptsHtml(request) || error.status >= 500) throw error
      return sendPage(reply.code(error.status), missing(about, language), 'no-store')
    }
  }
}

/** Reads `after`; any other text is the beginning. */
function readPosition(after: unknown): Position | undefined {
  const [, position, id = ''] = /^(\d{1,9})\.([0-9A-Za-z]{8})$/.exec(typeof after === 'string' ? after : '') ?? []
  return position === undefined ? undefined : { position: Number(position), id }
}
