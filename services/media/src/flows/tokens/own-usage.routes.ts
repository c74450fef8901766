import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { findOwnUsage } from '../../core/tokens/own-usage.ts'
import type { Deps } from '../../deps.ts'
import { addTokenRoutes, tokenOf } from '../../http/authenticate.ts'
import { answers, orNull, tokenRoute } from '../../http/shapes.ts'

const UsageShape = Type.Object(
  {
    stored: Type.Object({
      clips: Type.Integer(),
      bytes: Type.Integer({ description: 'Bytes of sources and files.' }),
      reserved_bytes: Type.Integer({ description: 'Most that the files of processing clips may add.' }),
      limit_bytes: orNull(Type.Integer(), { description: 'Quota of the token; null without one.' }),
    }),
    today: Type.Object({
      clips: Type.Integer({ description: 'Clips that were added on this UTC day.' }),
      bytes: Type.Integer({ description: 'Bytes of their sources.' }),
      limit_bytes: orNull(Type.Integer(), { description: 'Bytes that the token may add a day; null without a limit.' }),
    }),
  },
  { title: 'Usage' },
)

export const ownUsageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get(
      '/usage',
      {
        schema: {
          ...tokenRoute('tokens', 'getUsage', 'Storage of the token, additions of today, and its limits'),
          response: answers(200, UsageShape, [401, 403, 429]),
        },
      },
      async (request) => ({ success: await findOwnUsage(deps, tokenOf(request)) }),
    )
  })
}
