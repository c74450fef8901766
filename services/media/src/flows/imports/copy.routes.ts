// POST /media/{id}/copies: another clip of the same source, with fields and an edit of its own. It is made of the
// original while that is stored, else of the mp4, and is otherwise an upload. Tests: copies.test.ts.
import { rm } from 'node:fs/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withoutNulls } from '@services/common/http/json-parser'
import { Type } from 'typebox'
import { cleanAlbumId } from '../../core/albums/album-fields.ts'
import { accessRulesOf, cleanNewAccess } from '../../core/clips/access.ts'
import { cleanFields, type RawFields } from '../../core/clips/clip-fields.ts'
import type { Clip } from '../../core/clips/clips.store.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import { findRenditions } from '../../core/clips/renditions.store.ts'
import { cleanEdit } from '../../core/edits/edit.ts'
import { findSource, originalOf } from '../../core/sources/sources.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { answerAttempt, parsePreference } from '../../http/answer-clip.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { clientGone } from '../../http/client-gone.ts'
import { addedAnswers } from '../../http/clip-details.ts'
import { keyedRequest } from '../../http/idempotency-key.ts'
import { refuseEarly } from '../../http/refuse-early.ts'
import { AddHeaders, AddQuery, tokenRoute } from '../../http/shapes.ts'
import { acceptClip } from '../../ingest/accept/accept-clip.ts'
import { beginRequest } from '../../ingest/accept/begin-request.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { clipMembers } from './import.routes.ts'

/** A clip that is not ready may be so after this time. */
const NOT_READY_SECONDS = 5

export const copyRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'write' })
  app.route({
    method: 'POST',
    url: '/media/:id/copies',
    schema: {
      ...tokenRoute('media', 'copyMedia', 'Adds another clip of the same source, with fields and an edit of its own'),
      description: 'Made of the original while that is stored, else of the mp4. Limits are those of an upload.',
      params: Type.Object({ id: Type.String() }),
      headers: AddHeaders,
      querystring: AddQuery,
      body: Type.Object(clipMembers),
      response: addedAnswers(400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 451, 504, 507),
    },
    onRequest: (request, reply) => deps.limits.count(request, reply, 'upload'),
    onError: deps.limits.refund,
    preValidation: async (request) => {
      const body = withoutNulls(request.body) as Record<string, unknown>
      if (body.attribution) body.attribution = withoutNulls(body.attribution)
      request.body = body as typeof request.body
    },
    handler: async (request, reply) => {
      const startedAt = Date.now()
      const { id: tokenId } = tokenOf(request)
      const { title, tags, nsfw, attribution, album, ...raw } = request.body
      const rules = accessRulesOf(deps, tokenId)
      const described = {
        fields: cleanFields({ title, tags, nsfw, attribution } as RawFields, 'attribution.'),
        access: cleanNewAccess(raw, rules),
        edit: cleanEdit(raw),
        album: cleanAlbumId(album ?? '', rules),
      }
      const copied = requireCopyable(await findOwnClip(deps, tokenOf(request), request.params.id), tokenId)
      const gone = clientGone(reply)
      const keyed = keyedRequest(request, 'upload', { content: `copy of ${copied.id}`, ...described })
      const attempt = await beginRequest(deps, keyed, gone)
      const path = deps.work.newPath()
      const accept = async () => {
        await refuseEarly(deps, request, reply, { atLeastBytes: 1 })
        const signal = AbortSignal.any([deps.forceStop, gone])
        await deps.work.withSpace(copied.bytes, () => fetchSource(deps, copied, path, signal))
        const file = { ...(await hashFile(path)), path }
        const { mp4First } = parsePreference(request.headers.prefer)
        const origin = { kind: 'upload' } as const
        return acceptClip(deps, { file, ...described, tokenId, origin, mp4First, signal, alongside: attempt.record })
      }
      try {
        const clip = attempt.known ?? (await attempt.settle(accept()))
        return await answerAttempt(deps, request, reply, { attempt, clip, startedAt, clientGone: gone })
      } finally {
        await rm(path, { force: true })
      }
    },
  })
}

/** Throws not_found for a clip of others, for an admin too: a copy would be the admin's own. */
function requireCopyable(clip: Clip, tokenId: string): Clip {
  if (clip.tokenId !== tokenId || clip.state === 'failed') throw apiError('not_found')
  if (clip.hiddenAt) throw apiError('hidden')
  if (clip.state === 'ready') return clip
  throw apiError('unavailable', { message: 'The clip is not ready yet.', retryAfterSeconds: NOT_READY_SECONDS })
}

async function fetchSource({ db, blobs }: Deps, { sourceId }: Clip, path: string, signal: AbortSignal): Promise<void> {
  const source = await findSource(db, sourceId)
  if (source && (await blobs.copyTo(originalOf(source), path, signal))) return
  const { mp4 } = await findRenditions(db, sourceId)
  if (!mp4 || !(await blobs.copyTo({ sha256: mp4.sha256, extension: 'mp4' }, path, signal))) throw apiError('gone')
}
