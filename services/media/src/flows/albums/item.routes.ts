// The clips of an album: replaced and ordered, added, taken out. Order of locks and limits: core/albums/.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { type AlbumDetails, describeAlbums } from '../../core/albums/album-view.ts'
import { type Album, etagOf } from '../../core/albums/albums.store.ts'
import { changeItems } from '../../core/albums/change-album.ts'
import { findOwnAlbum } from '../../core/albums/own-album.ts'
import { checkIds, placeItems } from '../../core/albums/place-items.ts'
import { auditAdmin } from '../../core/audit/audit.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { answers, counted, errorResponses, tokenRoute } from '../../http/shapes.ts'
import { AddedItemsBody, AlbumShape, ItemsBody } from './album-shapes.ts'

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

const REFUSALS = [400, 401, 403, 404, 408, 412, 413, 415, 422, 429]

export const itemRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, now, config } = deps

  /** Changes the clips of the own album that the request names. */
  async function change(
    request: FastifyRequest<WithId>,
    ids: readonly string[],
    place: (current: readonly string[]) => readonly string[],
  ): Promise<Album> {
    const album = await findOwnAlbum(db, tokenOf(request), request.params.id)
    const act = { action: 'album_changed', details: { fields: ['items'] } } as const
    const guard = {
      ifMatch: request.headers['if-match'],
      alongside: auditAdmin(deps, adminOf(request), album, act),
    }
    return changeItems(deps, album, { ids, place, ...guard })
  }

  async function answer(reply: FastifyReply, album: Album) {
    reply.header('etag', etagOf(album))
    const [described] = await describeAlbums(db, [album], { site: config.site, now: now() })
    return { success: described as AlbumDetails }
  }

  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.put<WithId & { Body: Static<typeof ItemsBody> }>(
      '/albums/:id/items',
      {
        schema: {
          ...tokenRoute('albums', 'setAlbumItems', 'Replaces and orders the clips of an album'),
          ...withId,
          requestHeaders: ['If-Match'],
          body: ItemsBody,
          response: answers(200, AlbumShape, REFUSALS, 'ETag'),
        },
      },
      async (request, reply) => {
        const { ids } = request.body
        checkIds(ids)
        return answer(reply, await change(request, ids, () => ids))
      },
    )

    part.post<WithId & { Body: Static<typeof AddedItemsBody> }>(
      '/albums/:id/items',
      {
        schema: {
          ...tokenRoute('albums', 'addAlbumItems', 'Adds clips to an album, or moves them before another clip'),
          description:
            'Without `before` clips are added at the end, and those that the album has already stay where they are.',
          ...withId,
          requestHeaders: ['If-Match'],
          body: AddedItemsBody,
          response: answers(200, AlbumShape, REFUSALS, 'ETag'),
        },
      },
      async (request, reply) => {
        const { ids, before } = request.body
        checkIds(ids)
        return answer(reply, await change(request, ids, (current) => placeItems(current, { ids, before })))
      },
    )

    part.delete<{ Params: { id: string; clip: string } }>(
      '/albums/:id/items/:clip',
      {
        schema: {
          ...tokenRoute('albums', 'removeAlbumItem', 'Takes a clip out of an album'),
          params: Type.Object({ id: Type.String(), clip: Type.String() }),
          requestHeaders: ['If-Match'],
          response: {
            204: counted(Type.Null(), 'ETag'),
            ...errorResponses(400, 401, 403, 404, 408, 412, 413, 415, 429),
          },
        },
      },
      async (request, reply) => {
        const { clip } = request.params
        const album = await change(request, [], (current) => {
          if (!current.includes(clip)) throw apiError('not_found')
          return current.filter((id) => id !== clip)
        })
        return reply.code(204).header('etag', etagOf(album)).send()
      },
    )
  })
}
