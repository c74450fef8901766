import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type Act, auditAdmin } from '../../core/audit/audit.ts'
import { createLink, linkExpiry, makeLinkSalt, readLinkSeconds } from '../../core/clip-access/share-links.ts'
import { toResult } from '../../core/clip-views/clip-result.ts'
import { type Clip, setLinkSalt } from '../../core/clips/clips.store.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { answers, counted, errorResponses, LinkSpan, ResultShape, Time, tokenRoute } from '../../http/shapes.ts'

const { files, embed, oembed } = ResultShape.properties
const LinksShape = Type.Object(
  { url: Type.String({ description: 'Page of the media.' }), embed, files, oembed, expires_at: Time },
  { title: 'Links' },
)

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

/** Links to a private clip, which end by themselves or all at once. */
export const linkRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { encryptionKey, site } = deps.config

  /** Undefined for a clip that is gone. */
  function setSalt(request: FastifyRequest, clip: Clip, how: { replace?: true }, act: Omit<Act, 'target'>) {
    const salt = { ...how, fresh: makeLinkSalt() }
    const alongside = auditAdmin(deps, adminOf(request), clip, act)
    if (!alongside) return setLinkSalt(deps.db, clip.id, salt)
    return deps.db.transaction().execute(async (trx) => {
      const set = await setLinkSalt(trx, clip.id, salt)
      if (set) await alongside(trx)
      return set
    })
  }

  // Not `read`: a link outlasts the token, and shows the clip to others.
  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.post<WithId & { Body: { expires_in?: string | number } | null }>(
      '/media/:id/links',
      {
        schema: {
          ...tokenRoute('media', 'createLinks', 'Makes addresses that show a private clip for some time'),
          ...withId,
          body: Type.Union([Type.Null(), Type.Object({ expires_in: Type.Optional(LinkSpan) })]),
          response: answers(200, LinksShape, [400, 401, 403, 404, 408, 410, 413, 415, 422, 429]),
        },
      },
      async (request) => {
        const clip = await findOwnClip(deps, tokenOf(request), request.params.id)
        const seconds = readLinkSeconds(request.body?.expires_in)
        const expiresAt = linkExpiry(clip, { seconds, now: deps.now() })
        const act = { action: 'links_created', details: { expires_at: expiresAt } } as const
        const linkSalt = await setSalt(request, clip, {}, act)
        if (!linkSalt) throw apiError('gone')
        const link = createLink(encryptionKey, { id: clip.id, linkSalt }, { target: 'page', expiresAt })
        const { page: url, ...addresses } = toResult(clip, site, link)
        return { success: { url, ...addresses, expires_at: link.expiresAt } }
      },
    )

    part.delete<WithId>(
      '/media/:id/links',
      {
        schema: {
          ...tokenRoute('media', 'endLinks', 'Ends all links to a clip'),
          ...withId,
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 410, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const clip = await findOwnClip(deps, tokenOf(request), request.params.id)
        await setSalt(request, clip, { replace: true }, { action: 'links_ended' })
        return reply.code(204).send()
      },
    )
  })
}
