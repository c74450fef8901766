import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery } from '../../core/clip-access/share-links.ts'
import { toView } from '../../core/clip-views/clip-view.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { cacheOfClip, isKnown } from '../../http/etag.ts'
import { errorResponses, linkQuery } from '../../http/shapes.ts'
import { elementData } from './element.ts'

/** Documentation only: element.ts writes the answers. */
const ElementShape = Type.Object(
  {
    state: Type.Union([Type.Literal('processing'), Type.Literal('ready')]),
    title: Type.String(),
    nsfw: Type.Boolean({ description: 'True for a clip that is shown only on request.' }),
    width: Type.Integer({ description: 'Pixels, 960 x 640 at most.' }),
    height: Type.Integer(),
    color: Type.Optional(Type.String({ description: 'Average colour of the poster, as in `#1d5fd6`.' })),
    poster: Type.Optional(Type.String({ description: 'Absent until it is stored, as are the sources.' })),
    sources: Type.Optional(
      Type.Array(Type.Object({ src: Type.String(), type: Type.String() }), {
        description: 'Videos; show the first that the browser can play.',
      }),
    ),
  },
  { title: 'ElementData' },
)
const ElementAnswer = Type.Unsafe<string>({ content: { 'application/json': { schema: ElementShape } } })

/** GET /embed/{id}/data: all that `<media-clip>` requests from us, beside the files. */
export const elementRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.get(
    '/embed/:id/data',
    {
      schema: {
        operationId: 'getElementData',
        summary: 'Data of a clip for the element <media-clip>',
        tags: ['pages'],
        requestHeaders: ['If-None-Match'],
        params: Type.Object({ id: Type.String() }),
        querystring: Type.Object({
          ...linkQuery,
          of: Type.Optional(
            Type.Unknown({
              description: '`embed` if the link is that of the player.',
              ...inDocument({ type: 'string' }),
            }),
          ),
        }),
        response: {
          200: withHeaders(ElementAnswer, 'ETag'),
          304: withHeaders(Type.Null(), 'ETag'),
          ...errorResponses(404, 410, 429, 451),
        },
      },
    },
    async (request, reply) => answer(request, reply, request.params.id, request.query),
  )

  async function answer(request: FastifyRequest, reply: FastifyReply, id: string, query: LinkQuery & { of?: unknown }) {
    const target = query.of === 'embed' ? 'embed' : 'page'
    const { clip, link } = await findShownClip(deps, id, { target, shows: 'embed', query })
    if (clip.state === 'failed') throw apiError('not_found')
    const text = JSON.stringify(elementData(toView(clip, deps.config.site, link)))
    const isReady = clip.state === 'ready'
    reply.header('cache-control', cacheOfClip({ isReady, isLinked: link !== undefined }))
    if (isReady && isKnown(request, reply, text)) return reply.code(304).send()
    return reply.type('application/json; charset=utf-8').send(text)
  }
}
