import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import { Type } from 'typebox'
import { type Act, auditAdmin } from '../../core/audit/audit.ts'
import { addLink, endLinks, listLinks, MOST_LISTED } from '../../core/clip-access/links.store.ts'
import { createLink, linkExpiry, readLinkSeconds } from '../../core/clip-access/share-links.ts'
import { toResult } from '../../core/clip-views/clip-result.ts'
import type { Clip } from '../../core/clips/clips.store.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { answers, counted, errorResponses, LinkSpan, ResultShape, Time, tokenRoute } from '../../http/shapes.ts'

const { files, embed, oembed } = ResultShape.properties
const LinksShape = Type.Object(
  { url: Type.String({ description: 'Page of the media.' }), embed, files, oembed, expires_at: Time },
  { title: 'Links' },
)

const LinkListShape = Type.Object({
  items: Type.Array(Type.Object({ ...LinksShape.properties, created_at: Time }, { title: 'ListedLinks' }), {
    maxItems: MOST_LISTED,
  }),
})

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

/** Undefined or false for a clip that is gone. */
type Step<Result> = (trx: Transaction<DB>) => Promise<Result>

/** Links to a private clip, which end by themselves or all at once. */
export const linkRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { encryptionKey, site } = deps.config

  /** Changes the links, with the record of an admin. */
  const change = <Result>(request: FastifyRequest, clip: Clip, act: Omit<Act, 'target'>, step: Step<Result>) =>
    deps.db.transaction().execute(async (trx) => {
      const result = await step(trx)
      if (!result) throw apiError('gone')
      await auditAdmin(deps, adminOf(request), clip, act)?.(trx)
      return result
    })
  const addressesOf = (clip: Clip, linkSalt: Buffer, expiresAt: Date) => {
    const link = createLink(encryptionKey, { id: clip.id, linkSalt }, { target: 'page', expiresAt })
    const { page: url, ...addresses } = toResult(clip, site, link)
    return { url, ...addresses, expires_at: link.expiresAt }
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
        const added = { clipId: clip.id, expiresAt, now: deps.now() }
        const linkSalt = await change(request, clip, act, (trx) => addLink(trx, added))
        return { success: addressesOf(clip, linkSalt, expiresAt) }
      },
    )

    part.get<WithId>(
      '/media/:id/links',
      {
        schema: {
          ...tokenRoute('media', 'listLinks', 'Links to a clip that have not expired, newest first'),
          description: `The newest ${MOST_LISTED}; further ones stay good.`,
          ...withId,
          response: answers(200, LinkListShape, [401, 403, 404, 410, 429]),
        },
      },
      async (request) => {
        const clip = await findOwnClip(deps, tokenOf(request), request.params.id)
        const { linkSalt } = clip
        const links = linkSalt ? await listLinks(deps.db, clip.id, deps.now()) : []
        const items = links.map(({ expiresAt, createdAt }) => ({
          ...addressesOf(clip, linkSalt as Buffer, expiresAt),
          created_at: createdAt,
        }))
        return { success: { items } }
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
        await change(request, clip, { action: 'links_ended' }, (trx) => endLinks(trx, clip.id))
        return reply.code(204).send()
      },
    )
  })
}
