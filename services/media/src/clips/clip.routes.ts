import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Kysely } from 'kysely'
import { Type } from 'typebox'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError, errorCatalogue } from '../errors.ts'
import { allows, requireToken, tokenOf } from '../http/authenticate.ts'
import { AttributionShape, errorResponses, ResultShape, TOKEN_SECURITY } from '../http/shapes.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import { isClipId } from './clip-id.ts'
import { type Clip, findClip, listFiles } from './clips.store.ts'
import { deleteClip } from './remove-clip.ts'
import { toResult } from './result.ts'

const Params = Type.Object({ id: Type.String() })

const FileShape = Type.Object({ bytes: Type.Integer(), width: Type.Integer(), height: Type.Integer() })

/** The specification's Result with what its owner may know beside it. */
const DetailsShape = Type.Object({
  ...ResultShape.properties,
  id: Type.String(),
  state: Type.Union([Type.Literal('processing'), Type.Literal('ready'), Type.Literal('failed')]),
  progress: Type.Number({ description: 'From 0 to 1.' }),
  title: Type.Union([Type.String(), Type.Null()]),
  tags: Type.Array(Type.String()),
  nsfw: Type.Boolean(),
  attribution: Type.Union([AttributionShape, Type.Null()]),
  created_at: Type.String({ format: 'date-time' }),
  source: Type.Object({
    kind: Type.Union([Type.Literal('upload'), Type.Literal('import')]),
    url: Type.Union([Type.String(), Type.Null()]),
    type: Type.String(),
    bytes: Type.Integer(),
  }),
  sizes: Type.Record(Type.String(), FileShape, { description: 'By kind; empty until the files are ready.' }),
  failure: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
})

/** GET and DELETE /media/{id}: for the token that added the clip, and for admins. */
export const clipRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  await app.register(async (scope) => {
    requireToken(scope, deps, { scope: 'read' })
    scope.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
    scope.get<{ Params: { id: string } }>(
      '/media/:id',
      {
        schema: {
          tags: ['media'],
          summary: 'State, progress and details of a clip',
          security: TOKEN_SECURITY,
          params: Params,
          response: { 200: Type.Object({ success: DetailsShape }), ...errorResponses(401, 403, 404, 410, 429) },
        },
      },
      async (request) => {
        const clip = await findOwnClip(deps.db, tokenOf(request), request.params.id)
        return { success: await describeClip(deps, clip) }
      },
    )
  })

  await app.register(async (scope) => {
    requireToken(scope, deps, { scope: 'delete' })
    scope.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
    scope.delete<{ Params: { id: string } }>(
      '/media/:id',
      {
        schema: {
          tags: ['media'],
          summary: 'Deletes a clip for good',
          security: TOKEN_SECURITY,
          params: Params,
          response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 410, 429) },
        },
      },
      async (request, reply) => {
        const clip = await findOwnClip(deps.db, tokenOf(request), request.params.id)
        if (!(await deleteClip(deps, clip.id))) throw apiError('gone')
        return reply.code(204).send()
      },
    )
  })
}

/** Somebody else's clip is not found: ids are public, what is known about them is not. */
export async function findOwnClip(db: Kysely<DB>, token: ApiToken, id: string): Promise<Clip> {
  const clip = isClipId(id) ? await findClip(db, id) : undefined
  if (!clip || !(clip.tokenId === token.id || allows(token, 'admin'))) throw apiError('not_found')
  if (clip.state === 'deleted') throw apiError('gone')
  return clip
}

async function describeClip(deps: Deps, clip: Clip) {
  const files = clip.state === 'ready' ? await listFiles(deps.db, clip.sourceId) : []
  return {
    ...toResult(clip, deps.config.site),
    id: clip.id,
    state: clip.state,
    progress: clip.progress,
    title: clip.title,
    tags: clip.tags,
    nsfw: clip.nsfw,
    attribution: clip.attribution,
    created_at: clip.createdAt.toISOString(),
    source: { kind: clip.sourceKind, url: clip.sourceUrl, type: clip.info.type, bytes: clip.bytes },
    sizes: Object.fromEntries(files.map(({ kind, ...size }) => [kind, size])),
    ...(clip.errorCode && {
      failure: { code: clip.errorCode, message: errorCatalogue[clip.errorCode].message },
    }),
  }
}
