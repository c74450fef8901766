import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { VISIBILITIES } from '../../core/clips/access.ts'
import { readOwnClips } from '../../core/lists/read-list.ts'
import { SORTS } from '../../core/lists/search/position.ts'
import type { Deps } from '../../deps.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import { linkToNext, pageOf, pageQuery, readLimit } from '../../http/cursor.ts'
import { answers, tokenRoute } from '../../http/shapes.ts'

const Query = Type.Object({
  ...pageQuery,
  q: Type.Optional(
    Type.String({
      description:
        'Words of title, tags or author: all of them, the last one by its beginning. Case and accents are ignored.',
    }),
  ),
  sort: Type.Optional(
    Type.Union(
      SORTS.map((sort) => Type.Literal(sort)),
      {
        description: '`bytes` are those of the source; `views` of all kinds and days.',
        ...inDocument({ default: 'created' }),
      },
    ),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
      description: 'Descending if absent; `sort=title` ascending.',
    }),
  ),
  from: Type.Optional(
    Type.String({ description: 'Earliest time of the upload or import: a day in UTC, or a time (RFC 3339).' }),
  ),
  to: Type.Optional(Type.String({ description: 'Time before which the clip was added.' })),
  tag: Type.Optional(Type.String({ description: 'Case is ignored.' })),
  album: Type.Optional(Type.String({ description: 'Id of an album in which the clips are.' })),
  state: Type.Optional(Type.Union([Type.Literal('processing'), Type.Literal('ready'), Type.Literal('failed')])),
  nsfw: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], inDocument({ anyOf: undefined, type: 'boolean' })),
  ),
  visibility: Type.Optional(Type.Union(VISIBILITIES.map((visibility) => Type.Literal(visibility)))),
  token: Type.Optional(
    Type.String({ description: 'For admins: clips of one token, or `none` for clips without a token.' }),
  ),
})

/** GET /media: the token's clips; admins see all clips. */
export const listRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'read' })
  app.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
  app.get(
    '/media',
    {
      schema: {
        ...tokenRoute('media', 'listMedia', 'Your clips, newest first'),
        description:
          'The header `Link` with `rel="next"` leads to the next page. A page of a search or of a sorted list may have fewer ' +
          'entries than `limit`, or none, and yet a next page.',
        querystring: Query,
        response: answers(200, pageOf(DetailsShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { query } = request
      const { clips, views, nextCursor } = await readOwnClips(deps, tokenOf(request), {
        ...query,
        limit: readLimit(query),
      })
      const { site } = deps.config
      if (nextCursor) {
        const { limit, q, sort, order, from, to, tag, album, state, nsfw, visibility, token } = query
        const list = { limit, q, sort, order, from, to, tag, album, state, nsfw, visibility, token }
        const next = { ...list, cursor: nextCursor }
        reply.header('link', linkToNext(site.baseUrl, '/media', next))
      }
      return {
        success: {
          items: clips.map(({ files, ...clip }) =>
            toDetails(clip, clip.isShowable ? files : [], site, views.get(clip.id)),
          ),
          next_cursor: nextCursor,
        },
      }
    },
  )
}
