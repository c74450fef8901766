// A token's clips: details, changes, deletion, lists, events. A clip of another token is not found, because only ids
// are public. Tests: test/clip-life.test.ts, lists.test.ts, events.test.ts.
import { timingSafeEqual } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withoutNulls } from '@services/common/http/json-parser'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { Type } from 'typebox'
import { auditAdmin } from '../../core/audit/audit.ts'
import { accessRulesOf } from '../../core/clips/access.ts'
import { etagOfClip, isMatch } from '../../core/clips/clip-etag.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import { type Clip, findDeleteTokenHash } from '../../core/clips/clips.store.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import { listFiles } from '../../core/clips/renditions.store.ts'
import { changeAccess, changeTexts } from '../../core/lifecycle/change-clip.ts'
import { softDeleteClip } from '../../core/lifecycle/delete-clip.ts'
import { hashToken } from '../../core/tokens/token-format.ts'
import { viewsOf } from '../../core/views/find-views.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import { answers, counted, errorResponses, TOKEN_SECURITY, tokenRoute } from '../../http/shapes.ts'
import { preparePosterChange, readPoster } from './change-poster.ts'
import { PatchBody, readAccess, readChanges } from './clip-changes.ts'

const Params = Type.Object({ id: Type.String() })

export const clipRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config
  const detailsOf = async (clip: Clip) => {
    const files = clip.isShowable ? await listFiles(deps.db, clip.sourceId) : []
    const views = await viewsOf(deps, deps.db, [clip.id])
    return toDetails(clip, files, site, views.get(clip.id))
  }
  const describe = async (reply: FastifyReply, clip: Clip) => {
    reply.header('etag', etagOfClip(clip))
    return { success: await detailsOf(clip) }
  }
  /** Refuses a change of a clip that is not as the caller knows it, with the clip as it is. */
  const requireMatch = (ifMatch: string | undefined, request: FastifyRequest, id: string) =>
    ifMatch === undefined
      ? undefined
      : async (db: Kysely<DB>) => {
          const clip = await findOwnClip({ ...deps, db }, tokenOf(request), id)
          const etag = etagOfClip(clip)
          if (!isMatch(ifMatch, etag))
            throw apiError('clip_changed', { details: { etag, clip: await detailsOf(clip) } })
        }

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Params: { id: string } }>(
      '/media/:id',
      {
        schema: {
          ...tokenRoute('media', 'getMedia', 'State, progress and details of a clip'),
          params: Params,
          response: answers(200, DetailsShape, [401, 403, 404, 410, 429], 'ETag'),
        },
      },
      async (request, reply) => describe(reply, await findOwnClip(deps, tokenOf(request), request.params.id)),
    )
  })

  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.patch<{ Params: { id: string }; Body: Type.Static<typeof PatchBody> }>(
      '/media/:id',
      {
        schema: {
          ...tokenRoute('media', 'updateMedia', 'Changes texts, nsfw, attribution, visibility, lifetime or poster'),
          params: Params,
          description:
            '`If-Match` with the ETag of GET refuses a change of a clip that was changed since: 412 `clip_changed`, with ' +
            '`details.clip` and `details.etag` of now.',
          body: PatchBody,
          requestHeaders: ['If-Match'],
          response: answers(200, DetailsShape, [400, 401, 403, 404, 408, 410, 412, 413, 415, 422, 429, 507], 'ETag'),
        },
        preValidation: async ({ body }) => {
          const changes = body as { attribution?: unknown } | null
          if (changes?.attribution) changes.attribution = withoutNulls(changes.attribution)
        },
      },
      async (request, reply) => {
        const clip = await findOwnClip(deps, tokenOf(request), request.params.id)
        const { id, tokenId } = clip
        const texts = readChanges(request.body)
        const access = readAccess(request.body, accessRulesOf(deps, tokenId))
        const fields = Object.keys(PatchBody.properties).filter((name) => Object.hasOwn(request.body, name))
        const alongside = auditAdmin(deps, adminOf(request), clip, { action: 'clip_changed', details: { fields } })
        const at = readPoster(request.body.poster_at, clip)
        const steps = {
          alongside,
          precondition: requireMatch(request.headers['if-match'], request, id),
          poster: at === undefined ? undefined : await preparePosterChange(deps, clip, at),
        }
        if (access) await changeAccess(deps, id, { texts, access, ...steps })
        else if (Object.keys(texts).length > 0 || steps.poster) await changeTexts(deps, id, { texts, ...steps })
        else await steps.precondition?.(deps.db)
        if (steps.poster) deps.knownFiles.evict(id)
        return describe(reply, await findOwnClip(deps, tokenOf(request), id))
      },
    )
  })

  const anonymous = ({ headers }: FastifyRequest) => headers['x-delete-token'] !== undefined
  await addTokenRoutes(app, deps, { scope: 'delete', anonymous }, async (part) => {
    part.delete<{ Params: { id: string }; Headers: { 'x-delete-token'?: string } }>(
      '/media/:id',
      {
        schema: {
          operationId: 'deleteMedia',
          tags: ['media'],
          summary: 'Deletes a clip permanently',
          security: [...TOKEN_SECURITY, { deleteToken: [] }],
          params: Params,
          headers: Type.Object({
            'x-delete-token': Type.Optional(
              Type.String({ description: 'Delete token of the clip, from the answer to its upload.' }),
            ),
          }),
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 410, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const { id } = request.params
        const clip = request.apiToken ? await findOwnClip(deps, request.apiToken, id) : undefined
        if (!clip) await requireDeleteToken(deps.db, id, request.headers['x-delete-token'] ?? '')
        const alongside = clip && auditAdmin(deps, adminOf(request), clip, { action: 'clip_deleted' })
        const isDeleted = await softDeleteClip(deps, id, { alongside })
        deps.knownFiles.evict(id)
        if (!isDeleted) throw apiError('gone')
        return reply.code(204).send()
      },
    )
  })
}

/** An unknown clip, a clip without a delete token and a wrong token get the same answer. */
async function requireDeleteToken(db: Kysely<DB>, id: string, presented: string): Promise<void> {
  const hash = isClipId(id) ? await findDeleteTokenHash(db, id) : undefined
  if (!hash || !timingSafeEqual(hash, hashToken(presented))) throw apiError('not_found')
}
