import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { countTags, TAGS_AMONG } from '../../core/lists/tags.store.ts'
import type { Deps } from '../../deps.ts'
import { addTokenRoutes, tokenOf } from '../../http/authenticate.ts'
import { pageQuery, readLimit } from '../../http/cursor.ts'
import { answers, tokenRoute } from '../../http/shapes.ts'

const TagsShape = Type.Array(Type.Object({ tag: Type.String(), count: Type.Integer() }), { maxItems: 100 })

export const tagRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Querystring: { limit?: string } }>(
      '/media/tags',
      {
        schema: {
          ...tokenRoute('media', 'listTags', 'Tags of your clips, most used first'),
          description: `Counts the newest ${TAGS_AMONG.toLocaleString('en')} clips of the token. Case is ignored.`,
          querystring: Type.Object({ limit: pageQuery.limit }),
          response: answers(200, TagsShape, [401, 403, 422, 429]),
        },
      },
      async (request) => {
        const asked = { among: TAGS_AMONG, limit: readLimit(request.query), now: deps.now() }
        return { success: await deps.reads.current((db) => countTags(db, tokenOf(request).id, asked)) }
      },
    )
  })
}
