// /tus: uploads that survive a bad connection. An upload belongs to one token, and received bytes stay, however a
// request ends, until the upload is finished, deleted or expired. Tests: test/resumable-uploads.test.ts,
// test/unfinished-uploads.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requireToken } from '../../http/authenticate.ts'
import { ADDED_HEADERS, AddHeaders, counted, errorResponses, ResultShape, uploadRoute } from '../../http/shapes.ts'
import { begin, end, PIECE, reportOffset, resume, type WithId } from './tus.http.ts'
import { TUS_VERSION } from './tus-headers.http.ts'
import { createUploadLocks } from './upload-locks.ts'
import { inSlot, refuseWhenFull } from './upload-slot.http.ts'

const Params = Type.Object({ id: Type.String() })
const COUNT = { type: 'integer', minimum: 0 }
const choiceOf = (names: string[], members: object) => Type.String(inDocument({ enum: names, ...members }))

/** The result if the request had the whole file, otherwise empty. The document shows the usual case only. */
const BegunShape = Type.Union([Type.Object({ success: ResultShape }), Type.Null()], {
  description: 'The body is empty, or the result when the request has the whole file.',
  ...inDocument({ anyOf: undefined, type: 'null' }),
})

const TUS_HEADERS = [
  ...['Tus-Resumable', 'Tus-Version', 'Upload-Length', 'Upload-Defer-Length'],
  ...['Upload-Metadata', 'Upload-Expires'],
]
/** Headers of the answer to the last piece. */
const RESULT_HEADERS = ['X-Media', 'X-Media-Id', ...ADDED_HEADERS.filter((name) => name !== 'Location')]

export const tusRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const flow = { ...deps, locks: createUploadLocks() }

  // The handlers read bodies of their type, and no others.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['tus-resumable'] !== TUS_VERSION) throw apiError('tus_version_unsupported')
  })
  requireToken(app, deps, { scope: 'write', anonymous: () => !deps.config.uploadNeedsToken })

  const refuseFull = async (request: FastifyRequest) => refuseWhenFull(deps, request)
  const countCall = (request: FastifyRequest, reply: FastifyReply) => deps.limits.count(request, reply, 'read')
  const described = (operationId: string, summary: string) => ({
    ...uploadRoute(deps.config, operationId, summary),
    params: Params,
  })
  const tusHeaders = { 'tus-resumable': Type.Optional(choiceOf([TUS_VERSION], { required: true })) }

  app.post(
    '/tus',
    {
      schema: {
        ...uploadRoute(deps.config, 'beginUpload', 'Begins a resumable upload (tus 1.0.0)'),
        headers: Type.Object({
          ...tusHeaders,
          'upload-length': Type.Optional(
            Type.String({ description: 'Bytes of the whole file.', ...inDocument(COUNT) }),
          ),
          'upload-defer-length': Type.Optional(
            choiceOf(['1'], { description: '`1` when the length is not known yet.' }),
          ),
          'upload-metadata': Type.Optional(
            Type.String({ description: 'Fields of a form upload: name, blank, value in base64; separated by commas.' }),
          ),
        }),
        response: {
          201: counted(BegunShape, 'Location', 'Upload-Offset', ...TUS_HEADERS, ...RESULT_HEADERS),
          ...errorResponses(400, 401, 403, 408, 410, 412, 413, 415, 422, 429, 504, 507),
        },
      },
      onRequest: [refuseFull, (request, reply) => deps.limits.count(request, reply, 'upload')],
      onError: deps.limits.refund,
    },
    (request, reply) => inSlot(deps, request, () => begin(flow, request, reply)),
  )

  app.route<WithId>({
    method: 'PATCH',
    url: '/tus/:id',
    schema: {
      ...described('continueUpload', 'Sends a piece; the answer to the last one has the result'),
      consumes: [PIECE],
      body: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'Bytes from Upload-Offset on.' }),
      headers: Type.Object({
        ...tusHeaders,
        'upload-offset': Type.Optional(
          Type.String({
            description: 'Offset at which the piece begins.',
            ...inDocument({ ...COUNT, required: true }),
          }),
        ),
        accept: Type.Optional(Type.String({ description: 'With `application/json` the result is a 200 with a body.' })),
        prefer: AddHeaders.properties.prefer,
      }),
      response: {
        200: counted(Type.Object({ success: ResultShape }), 'Upload-Offset', ...TUS_HEADERS, ...RESULT_HEADERS),
        204: counted(Type.Null(), 'Upload-Offset', ...TUS_HEADERS, ...RESULT_HEADERS),
        ...errorResponses(400, 401, 403, 404, 408, 409, 410, 412, 413, 415, 422, 423, 429, 504, 507),
      },
    },
    // The body is read by the handler; the schema above is documentation.
    validatorCompiler: () => () => true,
    onRequest: [refuseFull, countCall],
    handler: (request, reply) => inSlot(deps, request, () => resume(flow, request, reply)),
  })

  app.route<WithId>({
    method: 'HEAD',
    url: '/tus/:id',
    schema: {
      ...described('getUploadOffset', 'Offset of an upload'),
      headers: Type.Object(tusHeaders),
      response: {
        200: counted(Type.Null(), 'Upload-Offset', ...TUS_HEADERS, ...RESULT_HEADERS),
        ...errorResponses(401, 403, 404, 410, 412, 423, 429),
      },
    },
    config: { swagger: { exposeHeadRoute: true } },
    onRequest: countCall,
    handler: (request, reply) => reportOffset(flow, request, reply),
  })

  app.route<WithId>({
    method: 'DELETE',
    url: '/tus/:id',
    schema: {
      ...described('deleteUpload', 'Deletes an upload; its clip stays, if there is one'),
      headers: Type.Object(tusHeaders),
      response: {
        204: counted(Type.Null(), ...TUS_HEADERS),
        ...errorResponses(400, 401, 403, 404, 408, 410, 412, 413, 415, 423, 429),
      },
    },
    onRequest: countCall,
    handler: (request, reply) => end(flow, request, reply),
  })

  // The protocol's workaround for proxies that allow GET and POST only.
  const overridden = { PATCH: resume, HEAD: reportOffset, DELETE: end }
  app.post<WithId>('/tus/:id', { schema: { hide: true }, onRequest: [refuseFull, countCall] }, (request, reply) => {
    const method = String(request.headers['x-http-method-override']).toUpperCase()
    if (!Object.hasOwn(overridden, method)) throw apiError('method_not_allowed')
    return inSlot(deps, request, () => overridden[method as keyof typeof overridden](flow, request, reply))
  })
}
