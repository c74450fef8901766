// POST /media/upload; /tus is in tus.routes.ts. Until the form is complete only one temporary file exists, which is
// deleted however the request ends. Repeats by Idempotency-Key: ingest/accept/begin-request.ts. The wait until a clip
// is ready (MEDIA_SYNC_WAIT): http/answer-clip.ts. Tests: test/upload.test.ts, test/parallel-uploads.test.ts.
import { rm } from 'node:fs/promises'
import multipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { refuseAlbum } from '../../core/albums/new-clip.ts'
import type { Result } from '../../core/clip-views/clip-result.ts'
import { accessRulesOf } from '../../core/clips/access.ts'
import { allows } from '../../core/tokens/scopes.ts'
import type { MediaType } from '../../db/media-info.ts'
import { namesInWords } from '../../db/source-types.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { answerAttempt, parsePreference } from '../../http/answer-clip.ts'
import { requireToken } from '../../http/authenticate.ts'
import { clientGone } from '../../http/client-gone.ts'
import { addedAnswers } from '../../http/clip-details.ts'
import { ClipFormFields, type FormField, readAlbumField, readFormFields } from '../../http/form-fields.ts'
import { keyedRequest, readKey } from '../../http/idempotency-key.ts'
import { refuseEarly } from '../../http/refuse-early.ts'
import { AddHeaders, AddQuery, uploadRoute } from '../../http/shapes.ts'
import { acceptClip, type NewClipInput } from '../../ingest/accept/accept-clip.ts'
import { beginRequest } from '../../ingest/accept/begin-request.ts'
import { countBytesIn } from '../../metrics.ts'
import { FORM_OVERHEAD_BYTES, fileTooLarge, receiveForm } from './receive-form.http.ts'
import { inSlot, refuseWhenFull } from './upload-slot.http.ts'

const formOf = (types: readonly MediaType[]) =>
  Type.Object({
    file: Type.Unsafe<string>({ type: 'string', format: 'binary', description: `${namesInWords(types, 'or')}.` }),
    ...ClipFormFields,
  })

export const uploadRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config } = deps
  const { maxBytes } = config.source
  requireToken(app, deps, { scope: 'write', anonymous: () => !config.uploadNeedsToken })
  await app.register(multipart)
  app.route({
    method: 'POST',
    url: '/media/upload',
    schema: {
      ...uploadRoute(config, 'uploadMedia', 'Adds a file; answers when the clip is ready'),
      consumes: ['multipart/form-data'],
      headers: AddHeaders,
      querystring: AddQuery,
      body: formOf(config.source.types),
      response: addedAnswers(400, 401, 403, 408, 409, 410, 413, 415, 422, 429, 504, 507),
    },
    // The handler reads the form part by part; the schema above is documentation.
    validatorCompiler: () => () => true,
    onRequest: [
      // Before the call is counted, and without a query.
      async (request) => refuseWhenFull(deps, request),
      (request, reply) => deps.limits.count(request, reply, 'upload'),
      async (request) => refuseUnreadable(request, maxBytes),
      (request, reply) => refuseUnread(deps, request, reply),
    ],
    onError: deps.limits.refund,
    handler: (request, reply) => inSlot(deps, request, () => addUpload(deps, request, reply)),
  })
}

async function refuseUnreadable({ headers }: FastifyRequest, maxBytes: number): Promise<void> {
  if (!/^multipart\/form-data\b/i.test(headers['content-type'] ?? '')) {
    throw apiError('unsupported_media_type', { message: 'The Content-Type must be multipart/form-data.' })
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes + FORM_OVERHEAD_BYTES) throw fileTooLarge(maxBytes)
}

/** Refuses early, to spare the transfer; the binding checks come later. A key passes: its clip may exist already. */
async function refuseUnread(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (readKey(request) !== undefined) return
  // The form adds FORM_OVERHEAD_BYTES at most.
  const atLeastBytes = Math.max(1, Number(request.headers['content-length'] ?? 0) - FORM_OVERHEAD_BYTES)
  await refuseEarly(deps, request, reply, { atLeastBytes })
}

/** The steps from the form to the answer; the first that throws decides the answer. */
async function addUpload(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<{ success: Result }> {
  const gone = clientGone(reply)
  const path = deps.work.newPath()
  try {
    const tokenId = request.apiToken?.id ?? null
    const rules = accessRulesOf(deps, tokenId)
    const beforeFile = async (fields: readonly FormField[]) => {
      // The clip of a key may exist already.
      if (readKey(request) === undefined) await refuseAlbum(deps.db, { album: readAlbumField(fields, rules), tokenId })
    }
    const { file, fields: texts } = await receiveForm(deps, request, { path, clientGone: gone, beforeFile })
    countBytesIn('upload', file.bytes)
    const described = readFormFields(texts, rules)
    const { mp4First, ...preference } = parsePreference(request.headers.prefer)
    // A token without the scope delete gets no delete link.
    const deleteLink = preference.deleteLink && (!request.apiToken || allows(request.apiToken, 'delete'))
    const input: NewClipInput = { file, ...described, tokenId, origin: { kind: 'upload' }, mp4First, deleteLink }
    const keyed = keyedRequest(request, 'upload', { content: file.sha256, ...described })
    const attempt = await beginRequest(deps, keyed, gone)
    const clip = attempt.known ?? (await attempt.settle(acceptClip(deps, { ...input, alongside: attempt.record })))
    await rm(path, { force: true })
    return await answerAttempt(deps, request, reply, { attempt, clip, startedAt: Date.now(), clientGone: gone })
  } finally {
    await rm(path, { force: true })
  }
}
