import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/documented'
import { Type } from 'typebox'
import { invalidField, oneLine, tagKey } from '../../core/clips/clip-fields.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import type { ApiToken } from '../../core/tokens/tokens.store.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { allows, requireToken, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, tokenRoute } from '../../http/shapes.ts'
import { listClips } from './clip-lists.store.ts'

const Query = Type.Object({
  ...pageQuery,
  tag: Type.Optional(Type.String({ description: 'Case is ignored.' })),
  state: Type.Optional(Type.Union([Type.Literal('processing'), Type.Literal('ready'), Type.Literal('failed')])),
  nsfw: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], inDocument({ anyOf: undefined, type: 'boolean' })),
  ),
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
        description: 'The header `Link` with `rel="next"` leads to the next page.',
        querystring: Query,
        response: answers(200, pageOf(DetailsShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { tag, state, nsfw, token } = request.query
      const { after, limit } = readPage(request.query, isClipId)
      const filter = {
        tokenId: ownerOf(tokenOf(request), token),
        tagKey: tag === undefined ? undefined : tagKey(oneLine(tag)),
        state,
        nsfw: nsfw === undefined ? undefined : nsfw === 'true',
      }
      const rows = await deps.reads.current((db) => listClips(db, filter, { after, limit: limit + 1, now: deps.now() }))
      const { items, nextCursor } = cutPage(rows, limit)
      const { site } = deps.config
      if (nextCursor) {
        const query = { limit: request.query.limit, tag, state, nsfw, token, cursor: nextCursor }
        reply.header('link', linkToNext(site.baseUrl, '/media', query))
      }
      return {
        success: {
          items: items.map(({ files, ...clip }) => toDetails(clip, clip.isShowable ? files : [], site)),
          next_cursor: nextCursor,
        },
      }
    },
  )
}

function ownerOf(caller: ApiToken, asked: string | undefined): string | null | undefined {
  if (!allows(caller, 'admin')) {
    if (asked === undefined || asked === caller.id) return caller.id
    throw apiError('insufficient_scope', { details: { scope: 'admin' } })
  }
  if (asked === 'none') return null
  if (asked !== undefined && !isUuid(asked)) throw invalidField('token', 'must be the id of a token, or none')
  return asked
}
