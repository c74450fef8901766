// GET and HEAD /f/{id}.{kind}: the files, for any site to use. A ready file never changes (`immutable`), and its
// headers make browsers distrust it (contract/media.md 4.8). Tests: test/serving.test.ts, test/delivery.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { RenditionKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { recordView } from '../../http/record-view.ts'
import { errorResponses } from '../../http/shapes.ts'
import { findPublicFile } from './find-public-file.ts'
import {
  answerProcessing,
  DownloadQuery,
  FILE_REQUEST_HEADERS,
  fileAnswers,
  mayPosterChange,
  sendFile,
} from './send-file.http.ts'

/** Files by the extension in the URL. */
export const FILES = {
  gif: { kind: 'gif', type: 'image/gif' },
  jpg: { kind: 'jpg', type: 'image/jpeg' },
  mp4: { kind: 'mp4', type: 'video/mp4' },
  webm: { kind: 'webm', type: 'video/webm' },
  'av1.mp4': { kind: 'av1', type: 'video/mp4' },
  webp: { kind: 'webp', type: 'image/webp' },
} as const satisfies Record<string, { kind: RenditionKind; type: string }>

const TYPES = [...new Set(Object.values(FILES).map(({ type }) => type))]

export const fileRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/f/:id.:kind',
    exposeHeadRoute: false,
    schema: {
      operationId: 'getFile',
      tags: ['files'],
      summary: 'A file of a clip: gif, jpg, mp4 or webm; av1.mp4 and webp if they were made',
      params: Type.Object({
        id: Type.String(),
        kind: Type.String(inDocument({ title: 'FileKind', enum: Object.keys(FILES) })),
      }),
      querystring: DownloadQuery,
      requestHeaders: FILE_REQUEST_HEADERS,
      response: { ...fileAnswers(TYPES), ...errorResponses(404, 410, 412, 416, 429, 451) },
    },
    handler: async (request, reply) => {
      // The router splits at the last dot, this at the first: `av1.mp4` is one extension.
      const [, id = '', ending = ''] = /^([^.]*)\.(.*)$/.exec(`${request.params.id}.${request.params.kind}`) ?? []
      const found = Object.hasOwn(FILES, ending) ? FILES[ending as keyof typeof FILES] : undefined
      if (!found) throw apiError('not_found')
      const clip = await findPublicFile(deps, { id, kind: found.kind, query: request.query })
      if (clip.state === 'processing') return answerProcessing(reply, clip.progress)
      const file = { ...clip, mayChange: found.kind === 'jpg' && mayPosterChange(clip, request.query.p) }
      deps.visitLog.record({ id, ...file })
      const { kind: extension, type } = found
      const download = request.query.download === '1'
      const sent = await sendFile(deps, request, reply, { name: id, ending, extension, type, file, download })
      // Pages and previews load the poster of a clip that no visitor plays.
      if (!type.startsWith('image/') || found.kind === 'gif') {
        recordView(deps, request, reply, { clipId: id, kind: 'file' })
      }
      return sent
    },
  })
}
