// /albums: a token's albums. An album of another token is not found, as a clip; admins have all. Clips in them:
// item.routes.ts. Tests: beside this file.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { cleanAlbumFields, requireTitle } from '../../core/albums/album-fields.ts'
import { type AlbumDetails, describeAlbums } from '../../core/albums/album-view.ts'
import { listAlbums } from '../../core/albums/albums.store.ts'
import { changeFields, createAlbum, deleteAlbum } from '../../core/albums/change-album.ts'
import { listItems } from '../../core/albums/items.store.ts'
import { findOwnAlbum } from '../../core/albums/own-album.ts'
import { auditAdmin } from '../../core/audit/audit.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import { answerOnce } from '../../core/idempotency/answer-once.ts'
import { ownerOf } from '../../core/lists/read-filter.ts'
import { viewsOf } from '../../core/views/find-views.ts'
import type { Deps } from '../../deps.ts'
import { addTokenRoutes, adminOf, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import {
  cutPage,
  linkToNext,
  pageOf,
  pageQuery,
  readCursor,
  readLimit,
  readPage,
  writeCursor,
} from '../../http/cursor.ts'
import { readKey } from '../../http/idempotency-key.ts'
import { answers, counted, errorResponses, tokenRoute } from '../../http/shapes.ts'
import { AlbumChangesBody, AlbumShape, albumMembers, NewAlbumBody } from './album-shapes.ts'

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }
type PageQuery = { limit?: string; cursor?: string }

const AlbumWithItems = Type.Object({ ...albumMembers, ...pageOf(DetailsShape).properties }, { title: 'AlbumWithClips' })

export const albumRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, now, config } = deps
  const { site } = config
  const answer = <Answer extends AlbumDetails>(reply: FastifyReply, album: Answer) => {
    reply.header('etag', album.etag)
    return { success: album }
  }

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Querystring: PageQuery & { token?: string } }>(
      '/albums',
      {
        schema: {
          ...tokenRoute('albums', 'listAlbums', 'Your albums, newest first'),
          querystring: Type.Object({
            ...pageQuery,
            token: Type.Optional(Type.String({ description: 'For admins: albums of one token.' })),
          }),
          response: answers(200, pageOf(AlbumShape), [401, 403, 422, 429], 'Link'),
        },
      },
      async (request, reply) => {
        const { limit: given, token } = request.query
        const { after, limit } = readPage(request.query, isClipId)
        // An album always has a token: `none` has none.
        const owner = ownerOf(tokenOf(request), token)
        const { items, nextCursor } = await deps.reads.current(async (reads) => {
          const rows = owner === null ? [] : await listAlbums(reads, owner, { after, limit: limit + 1 })
          const page = cutPage(rows, limit)
          return { ...page, items: await describeAlbums(reads, page.items, { site, now: now() }) }
        })
        if (nextCursor) {
          reply.header('link', linkToNext(site.baseUrl, '/albums', { limit: given, token, cursor: nextCursor }))
        }
        return { success: { items, next_cursor: nextCursor } }
      },
    )

    part.get<WithId & { Querystring: PageQuery }>(
      '/albums/:id',
      {
        schema: {
          ...tokenRoute('albums', 'getAlbum', 'An album with its clips, in their order'),
          ...withId,
          querystring: Type.Object(pageQuery),
          response: answers(200, AlbumWithItems, [401, 403, 404, 422, 429], 'Link', 'ETag'),
        },
      },
      async (request, reply) => {
        const { id } = request.params
        const { cursor } = request.query
        const limit = readLimit(request.query)
        const after = cursor === undefined ? undefined : readCursor(cursor, isClipId)
        const album = await findOwnAlbum(db, tokenOf(request), id)
        const [described] = await describeAlbums(db, [album], { site, now: now() })
        const rows = await listItems(db, id, { after, limit: limit + 1, now: now() })
        const clips = rows.slice(0, limit)
        const last = rows.length > limit ? clips.at(-1) : undefined
        const nextCursor = last ? writeCursor(last.position, last.id) : null
        if (nextCursor) {
          const query = { limit: request.query.limit, cursor: nextCursor }
          reply.header('link', linkToNext(site.baseUrl, `/albums/${id}`, query))
        }
        const ids = clips.map((clip) => clip.id)
        const views = await viewsOf(deps, db, ids)
        const items = clips.map(({ files, ...clip }) =>
          toDetails(clip, clip.isShowable ? files : [], site, views.get(clip.id)),
        )
        return answer(reply, { ...(described as AlbumDetails), items, next_cursor: nextCursor })
      },
    )
  })

  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.post<{ Body: Static<typeof NewAlbumBody> }>(
      '/albums',
      {
        schema: {
          ...tokenRoute('albums', 'createAlbum', 'Makes an album'),
          headers: Type.Object({ 'idempotency-key': Type.Optional(Type.String()) }),
          body: NewAlbumBody,
          response: answers(
            201,
            AlbumShape,
            [400, 401, 403, 408, 409, 413, 415, 422, 429],
            ...['ETag', 'Idempotency-Replayed'],
          ),
        },
      },
      async (request, reply) => {
        const { title, ...others } = request.body
        const usual = { description: null, visibility: 'public' as const }
        const fields = { ...usual, ...cleanAlbumFields(others), title: requireTitle(title) }
        const tokenId = tokenOf(request).id
        const key = readKey(request)
        const fingerprint = createHash('sha256').update(JSON.stringify(fields)).digest()
        const keyed = key === undefined ? undefined : { tokenId, route: 'albums' as const, key, fingerprint }
        const { answer: album, isReplay } = await db.transaction().execute((trx) =>
          answerOnce(trx, keyed, now(), async () => {
            const created = await createAlbum(deps, trx, { tokenId, fields })
            return (await describeAlbums(trx, [created], { site, now: now() }))[0] as AlbumDetails
          }),
        )
        if (isReplay) reply.header('idempotency-replayed', 'true')
        reply.code(201)
        return answer(reply, album)
      },
    )

    part.patch<WithId & { Body: Static<typeof AlbumChangesBody> }>(
      '/albums/:id',
      {
        schema: {
          ...tokenRoute('albums', 'updateAlbum', 'Changes title, description or visibility of an album'),
          ...withId,
          requestHeaders: ['If-Match'],
          body: AlbumChangesBody,
          response: answers(200, AlbumShape, [400, 401, 403, 404, 408, 412, 413, 415, 422, 429], 'ETag'),
        },
      },
      async (request, reply) => {
        const album = await findOwnAlbum(db, tokenOf(request), request.params.id)
        const fields = cleanAlbumFields(request.body)
        const alongside = auditAdmin(deps, adminOf(request), album, {
          action: 'album_changed',
          details: { fields: Object.keys(fields) },
        })
        const ifMatch = request.headers['if-match']
        const changed = await changeFields(deps, album.id, { fields, ifMatch, alongside })
        return answer(reply, (await describeAlbums(db, [changed], { site, now: now() }))[0] as AlbumDetails)
      },
    )

    part.delete<WithId>(
      '/albums/:id',
      {
        schema: {
          ...tokenRoute('albums', 'deleteAlbum', 'Deletes an album; its clips stay'),
          ...withId,
          requestHeaders: ['If-Match'],
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 412, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const album = await findOwnAlbum(db, tokenOf(request), request.params.id)
        const alongside = auditAdmin(deps, adminOf(request), album, { action: 'album_deleted' })
        await deleteAlbum(deps, album.id, { ifMatch: request.headers['if-match'], alongside })
        return reply.code(204).send()
      },
    )
  })
}
