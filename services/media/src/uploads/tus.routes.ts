// /tus: uploads that survive a bad connection. The one rule: an upload is its token's alone, and whatever ends a request,
// what has come of the file stays until the upload is finished, deleted or too old. The protocol's own rules:
// tus-protocol.ts. From the last byte to the clip: resumable-uploads.ts.
import { randomInt } from 'node:crypto'
import { PassThrough, type Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { refuseWhenBusy } from '../clips/accept-clip.ts'
import type { ClipFields } from '../clips/clip-fields.ts'
import { type Clip, findClip } from '../clips/clips.store.ts'
import { type Result, toResult } from '../clips/result.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { checkAllowance } from '../http/allowance-headers.ts'
import { answerClip } from '../http/answer-clip.ts'
import { requireToken } from '../http/authenticate.ts'
import { clientGone } from '../http/client-gone.ts'
import { errorResponses, ResultShape, TOKEN_SECURITY } from '../http/shapes.ts'
import { TUS_VERSION } from '../http/tus-headers.ts'
import { watchSpeed } from '../http/upload-speed.ts'
import { randomBase62 } from '../tokens/api-token.ts'
import { readFormFields } from './form-fields.ts'
import { countUnfinished, findUpload, type ResumableUpload } from './resumable-uploads.store.ts'
import { emptyFile, finishUpload, isUploadId, partialBytes, removeUpload, sweepUploads } from './resumable-uploads.ts'
import type { TusRequest } from './tus-protocol.ts'
import { createUploadLocks } from './upload-locks.ts'

const PIECE = 'application/offset+octet-stream'

/** For each upload that a token may have under way: so many that it may come back to. Each may hold as much disk as a file. */
const UNFINISHED_PER_PARALLEL = 8

const Params = Type.Object({ id: Type.String() })
type WithId = { Params: { id: string } }

export const tusRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const flow = { ...deps, locks: createUploadLocks() }
  const sweep = sweepNowAndThen(deps)

  // Bodies are read by the handlers; those of other types are not read at all.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['tus-resumable'] !== TUS_VERSION) throw apiError('tus_version_unsupported')
  })
  requireToken(app, deps, { scope: 'write', anonymous: () => !deps.config.uploadNeedsToken })

  const refuseWhenFull = async (request: FastifyRequest) => deps.uploads.refuseWhenFull(deps.limits.keyOf(request))
  const countCall = async (request: FastifyRequest, reply: FastifyReply) => {
    // Who has no token has no number of calls either, but a number of uploads: those are counted when they begin.
    if (request.apiToken) await deps.limits.count(request, reply, 'read')
  }
  const tags = ['media']
  const security = TOKEN_SECURITY
  const tusHeaders = { 'tus-resumable': Type.Optional(Type.String({ description: '1.0.0' })) }

  app.post(
    '/tus',
    {
      schema: {
        tags,
        security,
        summary: 'Begins a resumable upload (tus 1.0.0)',
        headers: Type.Object({
          ...tusHeaders,
          'upload-length': Type.Optional(Type.String({ description: 'Bytes of the whole file.' })),
          'upload-defer-length': Type.Optional(Type.String({ description: '`1` when that is not known yet.' })),
          'upload-metadata': Type.Optional(
            Type.String({ description: 'The fields of a form upload: name, blank, value in base64; with commas.' }),
          ),
        }),
        response: {
          201: Type.Union([Type.Object({ success: ResultShape }), Type.Null()]),
          ...errorResponses(400, 401, 403, 408, 412, 413, 415, 422, 429, 507),
        },
      },
      onRequest: [refuseWhenFull, (request, reply) => deps.limits.count(request, reply, 'upload')],
    },
    (request, reply) => {
      sweep()
      return deps.limits.unlessSentAway(request, reply, 'upload', () =>
        inSlot(deps, request, () => begin(flow, request, reply)),
      )
    },
  )

  app.route<WithId>({
    method: 'PATCH',
    url: '/tus/:id',
    schema: {
      tags,
      security,
      summary: 'Sends a piece; the last one is answered with the result',
      params: Params,
      consumes: [PIECE],
      body: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The bytes from there on.' }),
      headers: Type.Object({
        ...tusHeaders,
        'upload-offset': Type.Optional(Type.String({ description: 'Where the piece begins.' })),
        accept: Type.Optional(
          Type.String({ description: 'Naming `application/json` gets the result as 200 with a body.' }),
        ),
        prefer: Type.Optional(Type.String({ description: '`respond-async` does not wait.' })),
      }),
      response: {
        200: Type.Object({ success: ResultShape }),
        204: Type.Null(),
        ...errorResponses(400, 401, 403, 404, 408, 409, 410, 412, 413, 415, 422, 423, 429, 507),
      },
    },
    // The body is read by the handler; the schema above is documentation.
    validatorCompiler: () => () => true,
    onRequest: [refuseWhenFull, countCall],
    handler: (request, reply) => inSlot(deps, request, () => goOn(flow, request, reply)),
  })

  app.route<WithId>({
    method: 'HEAD',
    url: '/tus/:id',
    schema: {
      tags,
      security,
      summary: 'How far an upload is',
      params: Params,
      headers: Type.Object(tusHeaders),
      response: { 200: Type.Null(), ...errorResponses(401, 403, 404, 410, 412, 423, 429) },
    },
    onRequest: countCall,
    handler: (request, reply) => tell(flow, request, reply),
  })

  app.route<WithId>({
    method: 'DELETE',
    url: '/tus/:id',
    schema: {
      tags,
      security,
      summary: 'Gives an upload up; a clip that was made of it stays',
      params: Params,
      headers: Type.Object(tusHeaders),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 410, 412, 413, 415, 423, 429) },
    },
    onRequest: countCall,
    handler: (request, reply) => end(flow, request, reply),
  })

  // The protocol's way round proxies that know GET and POST only.
  const overridden = { PATCH: goOn, HEAD: tell, DELETE: end }
  app.post<WithId>('/tus/:id', { schema: { hide: true }, onRequest: [refuseWhenFull, countCall] }, (request, reply) => {
    const method = String(request.headers['x-http-method-override']).toUpperCase()
    if (!Object.hasOwn(overridden, method)) throw apiError('method_not_allowed')
    return inSlot(deps, request, () => overridden[method as keyof typeof overridden](flow, request, reply))
  })
}

type Flow = Deps & { locks: ReturnType<typeof createUploadLocks> }

const inSlot = <T>(deps: Deps, request: FastifyRequest, work: () => Promise<T>): Promise<T> =>
  deps.uploads.run(work, { key: deps.limits.keyOf(request) })

const ownerOf = (request: FastifyRequest) => request.apiToken?.id ?? null

/** POST /tus: refuses what can be refused before a byte was sent. */
async function begin(deps: Flow, request: FastifyRequest, reply: FastifyReply) {
  const { headers } = request
  const tokenId = ownerOf(request)
  if (headers['upload-concat'] !== undefined) {
    throw apiError('invalid_request', { message: 'Concatenation is not supported; send one upload at a time.' })
  }
  if (headers['upload-length'] === '0') throw emptyFile()
  await readMetadata(String(headers['upload-metadata'] ?? ''))
  if ((await countUnfinished(deps.db, tokenId, deps.now())) >= deps.config.limits.parallel * UNFINISHED_PER_PARALLEL) {
    throw apiError('queue_full', {
      message: 'Too many unfinished uploads; finish or delete some.',
      retryAfterSeconds: 60,
    })
  }
  await refuseWhenBusy(deps, tokenId)
  const bytes = Math.min(Number(headers['upload-length']) || 0, deps.config.source.maxBytes)
  await checkAllowance(deps, request, reply, { atLeastBytes: Math.max(1, bytes) })
  const id = randomBase62(32, randomInt)
  return receive(deps, request, reply, { id, bytes })
}

/** PATCH /tus/{id}. */
async function goOn(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== PIECE) throw apiError('unsupported_media_type', { message: `The Content-Type must be ${PIECE}.` })
  const upload = await findOwnUpload(deps, request)
  if (upload.clipId === null) return receive(deps, request, reply, { id: upload.id, bytes: upload.bytes ?? 0 })
  if (request.headers['upload-offset'] !== String(upload.bytes)) throw apiError('offset_conflict')
  return answerFinished(deps, request, reply, { id: upload.id, gone: clientGone(reply) })
}

/** HEAD /tus/{id}. */
async function tell(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const upload = await findOwnUpload(deps, request)
  const clip = upload.clipId === null ? undefined : await findClip(deps.db, upload.clipId)
  if (clip?.state === 'deleted' || (upload.clipId !== null && !clip)) throw apiError('gone')
  await speak(deps, request, reply, { method: 'HEAD', id: upload.id })
  if (clip) tellResult(reply, clip, toResult(clip, deps.config.site)).header('x-media-state', clip.state)
  else tellExpiry(reply, upload)
  return reply.send()
}

/** DELETE /tus/{id}. */
async function end(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const { id } = await findOwnUpload(deps, request)
  await speak(deps, request, reply, { method: 'DELETE', id })
  return reply.send()
}

/** Somebody else's is not there. */
async function findOwnUpload(deps: Flow, request: FastifyRequest<WithId>): Promise<ResumableUpload> {
  const { id } = request.params
  const upload = isUploadId(id) ? await findUpload(deps.db, id) : undefined
  if (!upload || upload.tokenId !== ownerOf(request)) throw apiError('not_found')
  if (upload.expiresAt <= deps.now()) throw apiError('gone', { message: 'This upload was not finished in time.' })
  return upload
}

/** Takes what comes of the file, and makes a clip of it when that was the end. */
async function receive(
  deps: Flow,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, bytes }: { id: string; bytes: number },
) {
  const { raw, headers } = request
  const { maxBytes } = deps.config.source
  const method = reply.request.routeOptions.url === '/tus' ? 'POST' : 'PATCH'
  const gone = clientGone(reply)
  const speed = watchSpeed(() => raw.socket.bytesRead, deps.patience)
  const stop = AbortSignal.any([deps.hurry, gone, speed.signal])
  const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  const body = hasBody ? untilStopped(raw, stop) : undefined
  const announced = headers['content-length'] === undefined ? bytes || maxBytes : Number(headers['content-length'])
  const mostBytes = Math.min(maxBytes, Math.max(method === 'POST' ? bytes : 0, hasBody ? announced : 0))
  try {
    await deps.work.withSpace(mostBytes, () =>
      speak(deps, request, reply, { method, id, ...(body && { body: body.stream }) }),
    )
  } finally {
    speed.stop()
    body?.release()
  }
  const upload = await findUpload(deps.db, id)
  if (!upload) throw apiError('not_found')
  if (upload.bytes !== null && upload.bytes === (await partialBytes(deps, id))) {
    return answerFinished(deps, request, reply, { id, gone })
  }
  stop.throwIfAborted()
  return tellExpiry(reply, upload).send()
}

/** Ends instead of failing, so that what has come is kept. `release` must be called. */
function untilStopped(raw: Readable, stop: AbortSignal): { stream: Readable; release: () => void } {
  const stream = new PassThrough()
  const end = () => {
    raw.unpipe(stream)
    stream.end()
  }
  raw.pipe(stream)
  stop.addEventListener('abort', end)
  if (stop.aborted) end()
  const release = () => {
    stop.removeEventListener('abort', end)
    raw.unpipe(stream)
    stream.destroy()
  }
  return { stream, release }
}

/** What @tus/server makes of the request, as status and headers of our answer. */
async function speak(
  deps: Flow,
  request: FastifyRequest,
  reply: FastifyReply,
  { method, id, body }: Pick<TusRequest, 'method' | 'id'> & { body?: Readable },
): Promise<void> {
  const headers = new Headers()
  for (const name of READ_BY_THE_PROTOCOL) {
    const value = request.headers[name]
    // Clients without anything to say send the header all the same.
    if (typeof value === 'string' && value !== '') headers.set(name, value)
  }
  const { speakTus } = await import('./tus-protocol.ts')
  const answer = await speakTus(deps, { method, id, tokenId: ownerOf(request), headers, body })
  reply.code(answer.status)
  for (const name of SAID_BY_THE_PROTOCOL) {
    const value = answer.headers.get(name)
    if (value !== null) reply.header(name, value)
  }
}

const READ_BY_THE_PROTOCOL = [
  'content-length',
  'content-type',
  'tus-resumable',
  'upload-defer-length',
  'upload-length',
  'upload-metadata',
  'upload-offset',
]

const SAID_BY_THE_PROTOCOL = [
  'connection',
  'location',
  'upload-defer-length',
  'upload-length',
  'upload-metadata',
  'upload-offset',
]

/**
 * The result in the headers of the last piece's answer, and as a body where one is expected: after a POST that brought the
 * whole file, and for who asks for JSON. Else 204, which the protocol wants and some clients insist on.
 */
async function answerFinished(
  deps: Flow,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, gone }: { id: string; gone: AbortSignal },
) {
  const location = reply.getHeader('location')
  // True once it is a clip.
  reply.removeHeader('upload-offset')
  const clip = await finishUpload(deps, id, readMetadata)
  const answer = await answerClip(deps, request, reply, { clip, startedAt: Date.now(), clientGone: gone }).catch(
    async (error) => {
      // What the clip failed with: nothing is left of it, nor shall there be of the upload.
      if (error instanceof ApiError) await removeUpload(deps, id)
      throw error
    },
  )
  tellResult(reply, clip, answer.success).header('upload-offset', clip.bytes)
  if (location !== undefined) return reply.header('location', location).send(answer)
  reply.removeHeader('location')
  const wantsBody = /application\/json/i.test(request.headers.accept ?? '')
  return wantsBody ? reply.code(200).send(answer) : reply.code(204).send()
}

const tellResult = (reply: FastifyReply, { id }: Clip, result: Result) =>
  reply.headers({ 'x-media-id': id, 'x-media': toAscii(JSON.stringify(result)) })

const tellExpiry = (reply: FastifyReply, { expiresAt }: ResumableUpload) =>
  reply.header('upload-expires', expiresAt.toUTCString())

/** Still the same JSON: headers know no other letters. */
const toAscii = (json: string) =>
  json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The fields of a form, under the same names. Throws invalid_request and what a form's fields throw. */
async function readMetadata(header: string): Promise<ClipFields> {
  const { parseMetadata } = await import('./tus-protocol.ts')
  const metadata = parseMetadata(header)
  if (!metadata) {
    throw apiError('invalid_request', { message: 'Upload-Metadata is not as the protocol spells it.' })
  }
  // A name without a value is a flag that is set.
  const fields = Object.entries(metadata).map(([name, value]) => ({
    name,
    value: value ?? (name === 'nsfw' ? 'true' : ''),
  }))
  return readFormFields(fields)
}

/** On the way past, at most every few minutes: there may be no worker that sees this disk. */
function sweepNowAndThen(deps: Deps): () => void {
  let lastAt = 0
  return () => {
    if (Date.now() - lastAt < deps.patience.housekeepingEveryMs) return
    lastAt = Date.now()
    sweepUploads(deps).catch((err) => deps.log.warn({ err }, 'old uploads could not be tidied up, will be tried again'))
  }
}
