// Links to a private album; they end by themselves or all at once, and with them the addresses of its clips.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { albumSnippet, albumUrls } from '../../core/albums/album-view.ts'
import { type Album, setAlbumSalt } from '../../core/albums/albums.store.ts'
import { findOwnAlbum } from '../../core/albums/own-album.ts'
import { type Act, auditAdmin } from '../../core/audit/audit.ts'
import { createLink, linkExpiry, makeLinkSalt, readLinkSeconds } from '../../core/clip-access/share-links.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { answers, counted, errorResponses, LinkSpan, Time, tokenRoute } from '../../http/shapes.ts'

const AlbumLinksShape = Type.Object(
  {
    page: Type.String({ description: 'Page of the album.' }),
    embed: Type.String({ description: 'HTML of an iframe that shows the album.' }),
    expires_at: Time,
  },
  { title: 'AlbumLinks' },
)

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

export const albumLinkRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { encryptionKey, site } = deps.config
  const lasting = { expiresAt: null }

  const findOwn = (request: FastifyRequest<WithId>) => findOwnAlbum(deps.db, tokenOf(request), request.params.id)

  /** Throws not_found for an album that was deleted meanwhile. */
  async function setSalt(
    request: FastifyRequest<WithId>,
    album: Album,
    how: { replace?: true },
    act: Omit<Act, 'target'>,
  ): Promise<Buffer> {
    const salt = { ...how, fresh: makeLinkSalt() }
    const alongside = auditAdmin(deps, adminOf(request), album, act)
    const set = await deps.db.transaction().execute(async (trx) => {
      const linkSalt = await setAlbumSalt(trx, album.id, salt)
      if (linkSalt) await alongside?.(trx)
      return linkSalt
    })
    if (!set) throw apiError('not_found')
    return set
  }

  // Not `read`: a link outlasts the token, and shows the album to others.
  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.post<WithId & { Body: { expires_in?: string | number } | null }>(
      '/albums/:id/links',
      {
        schema: {
          ...tokenRoute('albums', 'createAlbumLinks', 'Makes addresses that show a private album for some time'),
          ...withId,
          body: Type.Union([Type.Null(), Type.Object({ expires_in: Type.Optional(LinkSpan) })]),
          response: answers(201, AlbumLinksShape, [400, 401, 403, 404, 408, 413, 415, 422, 429]),
        },
      },
      async (request, reply) => {
        const album = await findOwn(request)
        const seconds = readLinkSeconds(request.body?.expires_in)
        const expiresAt = linkExpiry(lasting, { seconds, now: deps.now() })
        const act = { action: 'album_links_created', details: { expires_at: expiresAt } } as const
        const linkSalt = await setSalt(request, album, {}, act)
        const link = createLink(encryptionKey, { id: album.id, linkSalt }, { target: 'page', expiresAt })
        const { page, embed } = albumUrls(album.id, site, link)
        return reply.code(201).send({ success: { page, embed: albumSnippet(album, embed), expires_at: expiresAt } })
      },
    )

    part.delete<WithId>(
      '/albums/:id/links',
      {
        schema: {
          ...tokenRoute('albums', 'endAlbumLinks', 'Ends all links to an album'),
          ...withId,
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const album = await findOwn(request)
        await setSalt(request, album, { replace: true }, { action: 'album_links_ended' })
        return reply.code(204).send()
      },
    )
  })
}
