// The requests to /tus, each from its headers to its answer. Access and limits: tus.routes.ts.
import { randomInt } from 'node:crypto'
import { PassThrough, type Readable } from 'node:stream'
import { ApiError } from '@services/common/errors'
import type { Locker } from '@tus/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { refuseAlbum } from '../../core/albums/new-clip.ts'
import { type Result, toResult } from '../../core/clip-views/clip-result.ts'
import { type AccessRules, accessRulesOf } from '../../core/clips/access.ts'
import { type Clip, findClip } from '../../core/clips/clips.store.ts'
import { randomBase62 } from '../../core/tokens/token-format.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { answerClip, parsePreference } from '../../http/answer-clip.ts'
import { clientGone } from '../../http/client-gone.ts'
import { type AddedFields, readFormFields } from '../../http/form-fields.ts'
import { refuseEarly } from '../../http/refuse-early.ts'
import { emptyFile } from './receive-form.http.ts'
import { countUnfinished, findUpload, type ResumableUpload } from './resumable-uploads.store.ts'
import { finishUpload, hardDeleteUpload, isUploadId, moreThanAnnounced, partialBytes } from './resumable-uploads.ts'
import type { TusRequest } from './tus-protocol.ts'
import { watchSpeed } from './upload-speed.ts'

/** Content type of a piece of a file. */
export const PIECE = 'application/offset+octet-stream'

/** Unfinished uploads of a caller for each parallel one. Each may hold as much disk as a whole file. */
const UNFINISHED_PER_PARALLEL = 8

export type WithId = { Params: { id: string } }

type Flow = Deps & { locks: Locker }

const ownerOf = (request: FastifyRequest) => request.apiToken?.id ?? null

/** POST /tus: refuses as much as possible before a byte is sent. */
export async function begin(deps: Flow, request: FastifyRequest, reply: FastifyReply) {
  const { headers } = request
  const tokenId = ownerOf(request)
  if (headers['upload-concat'] !== undefined) {
    throw apiError('invalid_request', { message: 'Concatenation is not supported; send one upload at a time.' })
  }
  if (headers['upload-length'] === '0') throw emptyFile()
  const { album } = await readMetadata(String(headers['upload-metadata'] ?? ''), accessRulesOf(deps, tokenId))
  await refuseAlbum(deps.db, { album, tokenId })
  const unfinished = await countUnfinished(deps.db, deps.limits.keyOf(request), deps.now())
  if (unfinished >= deps.config.limits.parallel * UNFINISHED_PER_PARALLEL) {
    const message = 'Too many unfinished uploads; finish or delete some.'
    throw apiError('queue_full', { message, retryAfterSeconds: 60 })
  }
  const bytes = Math.min(Number(headers['upload-length']) || 0, deps.config.source.maxBytes)
  await refuseEarly(deps, request, reply, { atLeastBytes: Math.max(1, bytes) })
  return receive(deps, request, reply, { id: randomBase62(32, randomInt), bytes })
}

export async function resume(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== PIECE) throw apiError('unsupported_media_type', { message: `The Content-Type must be ${PIECE}.` })
  const upload = await findOwnUpload(deps, request)
  if (upload.clip_id === null) return receive(deps, request, reply, { id: upload.id, bytes: upload.bytes ?? 0 })
  if (request.headers['upload-offset'] !== String(upload.bytes)) throw apiError('offset_conflict')
  if (Number(request.headers['content-length'] ?? 0) > 0) throw moreThanAnnounced()
  return answerFinished(deps, request, reply, { id: upload.id, gone: clientGone(reply) })
}

export async function reportOffset(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const upload = await findOwnUpload(deps, request)
  const clip = upload.clip_id === null ? undefined : await findClip(deps.db, upload.clip_id, deps.now())
  if (clip?.state === 'deleted' || (upload.clip_id !== null && !clip)) throw apiError('gone')
  await speak(deps, request, reply, { method: 'HEAD', id: upload.id })
  if (clip) setResult(reply, clip, toResult(clip, deps.config.site), deps.config).header('x-media-state', clip.state)
  else setExpiry(reply, upload)
  return reply.send()
}

export async function end(deps: Flow, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const { id } = await findOwnUpload(deps, request)
  await speak(deps, request, reply, { method: 'DELETE', id })
  return reply.send()
}

/** Throws not_found for an upload of another caller, too. */
async function findOwnUpload(deps: Flow, request: FastifyRequest<WithId>): Promise<ResumableUpload> {
  const { id } = request.params
  const upload = isUploadId(id) ? await findUpload(deps.db, id) : undefined
  if (!upload || upload.token_id !== ownerOf(request)) throw apiError('not_found')
  if (upload.expires_at <= deps.now()) throw apiError('gone', { message: 'This upload was not finished in time.' })
  return upload
}

/** Stores a piece; the last one makes a clip. */
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
  const speed = watchSpeed(() => raw.socket.bytesRead, deps.timeLimits)
  const stop = AbortSignal.any([deps.forceStop, gone, speed.signal])
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
  // File before row: if another request finished the upload, its file is deleted after its row says so.
  const here = await partialBytes(deps, id)
  const upload = await findUpload(deps.db, id)
  if (!upload) throw apiError('not_found')
  if (upload.clip_id !== null || (upload.bytes !== null && upload.bytes === here)) {
    return answerFinished(deps, request, reply, { id, gone })
  }
  stop.throwIfAborted()
  return setExpiry(reply, upload).send()
}

/** Ends the stream instead of failing, so that received bytes are kept. `release` must be called. */
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

/** Hands the request to @tus/server; sets status and headers of our answer. */
async function speak(
  deps: Flow,
  request: FastifyRequest,
  reply: FastifyReply,
  { method, id, body }: Pick<TusRequest, 'method' | 'id'> & { body?: Readable },
): Promise<void> {
  const headers = new Headers()
  for (const name of REQUEST_HEADERS) {
    const value = request.headers[name]
    // Some clients send empty headers.
    if (typeof value === 'string' && value !== '') headers.set(name, value)
  }
  const { speakTus } = await import('./tus-protocol.ts')
  const owner = { tokenId: ownerOf(request), ownerKey: deps.limits.keyOf(request) }
  const answer = await speakTus(deps, { method, id, ...owner, headers, body })
  reply.code(answer.status)
  for (const name of ANSWER_HEADERS) {
    const value = answer.headers.get(name)
    if (value !== null) reply.header(name, value)
  }
}

const REQUEST_HEADERS = [
  'content-length',
  'content-type',
  'tus-resumable',
  'upload-defer-length',
  'upload-length',
  'upload-metadata',
  'upload-offset',
]

const ANSWER_HEADERS = [
  'connection',
  'location',
  'upload-defer-length',
  'upload-length',
  'upload-metadata',
  'upload-offset',
]

/**
 * Sends the result in headers, and as a body to a POST of the whole file or a request that accepts JSON. Otherwise 204,
 * which the protocol defines and some clients require.
 */
async function answerFinished(
  deps: Flow,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, gone }: { id: string; gone: AbortSignal },
) {
  const location = reply.getHeader('location')
  // Set below, once the upload is a clip.
  reply.removeHeader('upload-offset')
  const { mp4First } = parsePreference(request.headers.prefer)
  const rules = accessRulesOf(deps, ownerOf(request))
  const fieldsOf = (metadata: string) => readMetadata(metadata, rules)
  const clip = await finishUpload(deps, id, { fieldsOf, mp4First })
  const answer = await answerClip(deps, request, reply, { clip, startedAt: Date.now(), clientGone: gone }).catch(
    async (error) => {
      // The clip failed and was deleted; so is the upload.
      if (error instanceof ApiError) await hardDeleteUpload(deps, id)
      throw error
    },
  )
  setResult(reply, clip, answer.success, deps.config).header('upload-offset', clip.bytes)
  if (location !== undefined) return reply.header('location', location).send(answer)
  reply.removeHeader('location')
  const wantsBody = /application\/json/i.test(request.headers.accept ?? '')
  return wantsBody ? reply.code(200).send(answer) : reply.code(204).send()
}

/** Proxies allow 4 KiB for all headers. A title of emoji, 12 bytes each, would not fit: it is in the body only. */
const MAX_RESULT_BYTES = 2_500

function setResult(reply: FastifyReply, clip: Clip, result: Result, { site }: Deps['config']) {
  const whole = toAscii(JSON.stringify(result))
  const fits = whole.length <= MAX_RESULT_BYTES
  const text = fits ? whole : toAscii(JSON.stringify(toResult({ ...clip, title: null }, site)))
  return reply.headers({ 'x-media-id': clip.id, 'x-media': text })
}

const setExpiry = (reply: FastifyReply, { expires_at }: ResumableUpload) =>
  reply.header('upload-expires', expires_at.toUTCString())

/** Escapes non-ASCII characters, which headers cannot hold; the JSON stays the same. */
const toAscii = (json: string) =>
  json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const FLAGS = ['nsfw', 'mute', 'sliding']

/** Reads the fields of a form upload under the same names. Throws invalid_request and invalid_field. */
async function readMetadata(header: string, rules: AccessRules): Promise<AddedFields> {
  const { parseMetadata } = await import('./tus-protocol.ts')
  const metadata = parseMetadata(header)
  if (!metadata) throw apiError('invalid_request', { message: 'Upload-Metadata is malformed.' })
  // A name without a value is a flag that is set.
  const flagOf = (name: string) => (FLAGS.includes(name) ? 'true' : '')
  const fields = Object.entries(metadata).map(([name, value]) => ({ name, value: value ?? flagOf(name) }))
  return readFormFields(fields, rules)
}
