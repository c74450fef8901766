// GET and HEAD /media/{id}/moderation/{kind}: a file of any clip for moderators, who must see what was hidden. No cache
// and no redirect keeps it, because its public address may not be answered. Tests: test/moderation.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { isClipId } from '../../core/clips/clip-id.ts'
import { findFile } from '../../core/clips/renditions.store.ts'
import { MAIN_KINDS } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requireToken } from '../../http/authenticate.ts'
import { errorResponses, RATE_HEADERS, tokenRoute } from '../../http/shapes.ts'
import { FILES } from './file.routes.ts'
import { answerProcessing, FILE_REQUEST_HEADERS, fileAnswers, sendFile } from './send-file.http.ts'

const { 302: _never, ...ANSWERS } = fileAnswers(
  MAIN_KINDS.map((kind) => FILES[kind].type),
  RATE_HEADERS,
)

export const reviewRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'admin' })
  app.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))

  app.route({
    method: ['GET', 'HEAD'],
    url: '/media/:id/moderation/:kind',
    exposeHeadRoute: false,
    schema: {
      ...tokenRoute('moderation', 'reviewFile', 'A file of a clip, also of a hidden or private one'),
      params: Type.Object({ id: Type.String(), kind: Type.Enum(MAIN_KINDS) }),
      requestHeaders: FILE_REQUEST_HEADERS,
      response: { ...ANSWERS, ...errorResponses(401, 403, 404, 410, 412, 416, 422, 429) },
    },
    handler: async (request, reply) => {
      const { id, kind } = request.params
      const file = isClipId(id) ? await findFile(deps.db, id, kind) : undefined
      if (file?.state === 'deleted') throw apiError('gone')
      if (!file || file.state === 'absent') throw apiError('not_found')
      if (file.state === 'processing') return answerProcessing(reply, file.progress)
      const wanted = { name: id, ending: kind, extension: kind, type: FILES[kind].type, download: false }
      return sendFile(deps, request, reply, { ...wanted, file: { ...file, visibility: 'private', endsAt: deps.now() } })
    },
  })
}
