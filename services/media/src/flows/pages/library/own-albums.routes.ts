// Albums of an owner: all at /library/albums, and one at /library/albums/{id}. Forms make, save and delete them; order
// and links are changed by scripts, which call the API. Rules of albums: core/albums/. Tests: own-albums.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { cleanAlbumFields, type RawAlbumFields, requireTitle } from '../../../core/albums/album-fields.ts'
import { type AlbumDetails, describeAlbums } from '../../../core/albums/album-view.ts'
import { listAlbums } from '../../../core/albums/albums.store.ts'
import { changeFields, createAlbum, deleteAlbum } from '../../../core/albums/change-album.ts'
import { listItems } from '../../../core/albums/items.store.ts'
import { findOwnAlbum } from '../../../core/albums/own-album.ts'
import { auditAdmin } from '../../../core/audit/audit.ts'
import { isClipId } from '../../../core/clips/clip-id.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import { viewsOf } from '../../../core/views/find-views.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { adminOf } from '../../../http/authenticate.ts'
import { acceptSmallForms } from '../../../http/body-parsers.ts'
import { isOwnForm } from '../../../http/browser-session.ts'
import { cutPage, readCursor, readPage, writeCursor } from '../../../http/cursor.ts'
import { failureWords } from '../../../words/failures.ts'
import { ownAlbumScriptWords, ownAlbumWords } from '../../../words/own-albums.ts'
import { ownClipScriptWords } from '../../../words/own-clip.ts'
import { sendSignedInPage, type Visitor } from '../owner-page.http.ts'
import { requireVisitor, visitorWith } from '../visitor.http.ts'
import type { Setting } from './card.ts'
import { formatsOf } from './formats.ts'
import { albumDeletePage, ownAlbumPage } from './own-album-page.ts'
import { ownAlbumsPage } from './own-albums-page.ts'
import { showClips } from './shown-clips.ts'

/** Rows of cards. With more a page of long titles would exceed 60 KB. */
const PER_PAGE = 40

/** A description of 1,000 characters, each of up to twelve bytes in a form, and the title. */
const MAX_BODY_BYTES = 24 * 1024

const visibility = Type.Union([Type.Literal('public'), Type.Literal('unlisted'), Type.Literal('private')])
const Fields = { form_token: Type.String(), title: Type.String(), description: Type.String(), visibility }
const NewForm = Type.Object(Fields)
const ChangeForm = Type.Object({ ...Fields, etag: Type.String() })
const DeleteForm = Type.Object({ form_token: Type.String() })

const querystring = Type.Object({ cursor: Type.Optional(Type.String()) })
const params = Type.Object({ id: Type.String() })
type WithId = { Params: { id: string } }

/** Fields of a refused form, and the reason. */
interface Refused {
  typed?: RawAlbumFields
  problem?: string
  isStale?: boolean
}

export const ownAlbumRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config, now } = deps
  const { site } = config
  const path = `${site.baseUrl}/library/albums`
  acceptSmallForms(app, MAX_BODY_BYTES)
  requireVisitor(app, deps)

  app.get('/library/albums', { schema: { hide: true, querystring } }, (request, reply) =>
    sendList(request, reply, { cursor: request.query.cursor }),
  )

  app.post(
    '/library/albums',
    { bodyLimit: MAX_BODY_BYTES, schema: { hide: true, body: NewForm } },
    async (request, reply) => {
      const visitor = requireForm(request, request.body)
      const typed = fieldsOf(request.body)
      try {
        const cleaned = { description: null, visibility: 'public' as const, ...cleanAlbumFields(typed) }
        const fields = { ...cleaned, title: requireTitle(request.body.title) }
        const tokenId = visitor.token.id
        const { id } = await db.transaction().execute((trx) => createAlbum(deps, trx, { tokenId, fields }))
        return reply.redirect(`${path}/${id}`, 303)
      } catch (error) {
        return sendList(request, reply.code(422), { typed, problem: problemOf(error, visitor) })
      }
    },
  )

  app.get<WithId & { Querystring: { cursor?: string } }>(
    '/library/albums/:id',
    { schema: { hide: true, params, querystring } },
    (request, reply) => sendAlbum(request, reply, { cursor: request.query.cursor }),
  )

  app.post<WithId & { Body: Static<typeof ChangeForm> }>(
    '/library/albums/:id',
    { bodyLimit: MAX_BODY_BYTES, schema: { hide: true, params, body: ChangeForm } },
    async (request, reply) => {
      const visitor = requireForm(request, request.body)
      const album = await findOwnAlbum(db, visitor.token, request.params.id)
      const typed = fieldsOf(request.body)
      try {
        const fields = cleanAlbumFields(typed)
        const act = { action: 'album_changed', details: { fields: Object.keys(fields) } } as const
        const alongside = auditAdmin(deps, adminOf(request), album, act)
        await changeFields(deps, album.id, { fields, ifMatch: request.body.etag, alongside })
        return reply.redirect(`${path}/${album.id}`, 303)
      } catch (error) {
        const isStale = error instanceof ApiError && error.code === 'album_changed'
        if (isStale) return sendAlbum(request, reply.code(412), { typed, isStale })
        return sendAlbum(request, reply.code(422), { typed, problem: problemOf(error, visitor) })
      }
    },
  )

  app.get<WithId>('/library/albums/:id/delete', { schema: { hide: true, params } }, async (request, reply) => {
    const visitor = visitorWith(request, 'write')
    const album = await findOwnAlbum(db, visitor.token, request.params.id)
    return sendSignedInPage(reply, site, visitor, {
      ...{ title: ownAlbumWords[visitor.language].deleteTitle, current: '/library/albums' },
      body: albumDeletePage(album, visitor.formToken, settingOf(visitor)),
    })
  })

  app.post<WithId & { Body: Static<typeof DeleteForm> }>(
    '/library/albums/:id/delete',
    { bodyLimit: MAX_BODY_BYTES, schema: { hide: true, params, body: DeleteForm } },
    async (request, reply) => {
      const { token } = requireForm(request, request.body)
      const album = await findOwnAlbum(db, token, request.params.id)
      const alongside = auditAdmin(deps, adminOf(request), album, { action: 'album_deleted' })
      await deleteAlbum(deps, album.id, { alongside })
      return reply.redirect(path, 303)
    },
  )

  async function sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    { cursor, ...refused }: { cursor?: string | undefined } & Refused,
  ) {
    const visitor = visitorWith(request, 'read')
    const { language, token, formToken } = visitor
    const { after } = readPage({ cursor }, isClipId)
    const { items: albums, nextCursor } = await deps.reads.current(async (reads) => {
      const page = cutPage(await listAlbums(reads, token.id, { after, limit: PER_PAGE + 1 }), PER_PAGE)
      return { ...page, items: await describeAlbums(reads, page.items, { site, now: now() }) }
    })
    const page = { albums, nextCursor, isFirst: after === undefined, mayWrite: allows(token, 'write'), formToken }
    return sendSignedInPage(reply, site, visitor, {
      ...{ title: ownAlbumWords[language].title, current: '/library/albums' },
      ...{ styles: ['library.css', 'own-clip.css', 'grid.css'] },
      body: ownAlbumsPage({ ...page, ...refused }, settingOf(visitor)),
    })
  }

  async function sendAlbum(
    request: FastifyRequest<WithId>,
    reply: FastifyReply,
    { cursor, ...refused }: { cursor?: string | undefined } & Refused,
  ) {
    const visitor = visitorWith(request, 'read')
    const { language, token, formToken } = visitor
    const found = await findOwnAlbum(db, token, request.params.id)
    const after = cursor === undefined ? undefined : readCursor(cursor, isClipId)
    const [[album], rows, [first]] = await Promise.all([
      describeAlbums(db, [found], { site, now: now() }),
      listItems(db, found.id, { after, limit: PER_PAGE + 1, now: now() }),
      after ? listItems(db, found.id, { after: undefined, limit: 1, now: now() }) : [],
    ])
    const items = rows.slice(0, PER_PAGE)
    const last = rows.length > PER_PAGE ? items.at(-1) : undefined
    const ids = items.map(({ id }) => id)
    const clips = await showClips(deps, token, items, await viewsOf(deps, db, ids))
    const mayWrite = allows(token, 'write')
    const nextCursor = last ? writeCursor(last.position, last.id) : null
    const { title, description, visibility, etag } = album as AlbumDetails
    const page = { album: album as AlbumDetails, clips, nextCursor, isFirst: !after, mayWrite, formToken }
    const words = ownAlbumScriptWords[language]
    return sendSignedInPage(reply, site, visitor, {
      ...{ title, current: '/library/albums', scripts: ['library/own-album.js'] },
      ...{ styles: ['library.css', 'own-clip.css', 'grid.css'] },
      body: ownAlbumPage({ ...page, ...refused }, settingOf(visitor)),
      data: {
        words: { ...ownClipScriptWords[language], ...words },
        failures: { ...failureWords[language], not_found: words.notFound },
        ...{ id: found.id, etag, fields: { title, description: description ?? '', visibility } },
        // Clips around those of this page.
        ...{ first: first?.id, previous: after?.id, next: last && rows[PER_PAGE]?.id },
      },
    })
  }

  const settingOf = ({ language }: Visitor): Setting => ({
    ...{ language, formats: formatsOf(language), now: now(), baseUrl: site.baseUrl },
  })
}

/** Returns the visitor that sent a form of our own pages. Throws wrong_origin and insufficient_scope. */
function requireForm(request: FastifyRequest, { form_token }: { form_token: string }): Visitor {
  const visitor = visitorWith(request, 'write')
  if (!isOwnForm(visitor, form_token)) throw apiError('wrong_origin')
  return visitor
}

/** Browsers send the end of a line as two characters, which count in no limit. */
const fieldsOf = ({ title, description, visibility }: Static<typeof NewForm>): Required<RawAlbumFields> => ({
  ...{ title, description: description.replaceAll('\r\n', '\n'), visibility },
})

/** Throws what is no refusal of the form's fields. */
function problemOf(error: unknown, { language }: Visitor): string {
  if (!(error instanceof ApiError) || error.status !== 422) throw error
  return failureWords[language][error.code] ?? error.message
}
