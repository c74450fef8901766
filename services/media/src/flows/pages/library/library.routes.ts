// Pages of an owner: all clips at /library, and one at /library/{id} (contract/media-library.md 2 and 3). Both show
// what the API answers, by the same functions. Tests: library.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { toText } from '@services/common/html'
import { Type } from 'typebox'
import { listAlbums } from '../../../core/albums/albums.store.ts'
import { isClipId } from '../../../core/clips/clip-id.ts'
import { findOwnClip } from '../../../core/clips/own-clip.ts'
import { listFiles } from '../../../core/clips/renditions.store.ts'
import { softDeleteClip } from '../../../core/lifecycle/delete-clip.ts'
import { listClipsById } from '../../../core/lists/clip-lists.store.ts'
import { readOwnClips } from '../../../core/lists/read-list.ts'
import { countTags, TAGS_AMONG } from '../../../core/lists/tags.store.ts'
import { findOwnUsage } from '../../../core/tokens/own-usage.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import { dayOf, monthBefore } from '../../../core/tokens/usage.store.ts'
import { viewsOf } from '../../../core/views/find-views.ts'
import { findDays } from '../../../core/views/views.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { acceptSmallForms } from '../../../http/body-parsers.ts'
import { isOwnForm } from '../../../http/browser-session.ts'
import { failureWords } from '../../../words/failures.ts'
import { libraryWords } from '../../../words/library.ts'
import { libraryScriptWords } from '../../../words/library-scripts.ts'
import { ownClipScriptWords } from '../../../words/own-clip.ts'
import { sendSignedInPage, type Visitor } from '../owner-page.http.ts'
import { requireVisitor, visitorWith } from '../visitor.http.ts'
import { type Filters, readFilters, toQuery } from './address.ts'
import { nameOf, type Setting } from './card.ts'
import { deletePage } from './delete-page.ts'
import { formatsOf } from './formats.ts'
import { cardsOf, libraryPage } from './library-page.ts'
import { ownClipPage } from './own-clip-page.ts'
import { type ShownClip, showClips } from './shown-clips.ts'

/** Rows of two to eight cards. With more a page would exceed 60 KB. */
const PER_PAGE = 40

/** Albums to choose from: with more, long titles would exceed the size of the page. */
const MOST_ALBUMS = 30

/** The most used tags, counted as GET /media/tags does. */
const TAGS = { among: TAGS_AMONG, limit: 30 }

/** Clips that scripts, and forms without them, name at once. */
const MOST_NAMED = 100

const MAX_BODY_BYTES = 8 * 1024

const Query = Type.Record(Type.String(), Type.Unknown())
const DeleteBody = Type.Object({ form_token: Type.String(), ids: Type.String() })

export const libraryRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config, now } = deps
  const { site } = config
  acceptSmallForms(app, MAX_BODY_BYTES)
  requireVisitor(app, deps)

  app.get('/library', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const visitor = visitorWith(request, 'read')
    const { token, language } = visitor
    const filters = readFilters(request.query)
    const cursor = typeof request.query.cursor === 'string' ? request.query.cursor : undefined
    const setting = settingOf(visitor)
    const [list, usage, tags, albums] = await Promise.all([
      readPage(visitor, filters, cursor),
      findOwnUsage(deps, token),
      deps.reads.current((reads) => countTags(reads, token.id, { ...TAGS, now: now() })),
      deps.reads.current((reads) => listAlbums(reads, token.id, { after: undefined, limit: MOST_ALBUMS })),
    ])
    const may = rightsOf(token)
    return sendSignedInPage(reply, site, visitor, {
      ...{ title: libraryWords[language].title, current: '/library' },
      ...{ styles: ['library.css', 'grid.css'], scripts: ['library/library.js'] },
      body: libraryPage({ ...list, filters, cursor, tags, albums, usage, may }, setting),
      data: {
        ...{ words: libraryScriptWords[language], failures: failureWords[language], may, filters, token: token.id },
        isFirst: cursor === undefined,
      },
    })
  })

  app.get('/library/cards', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const visitor = visitorWith(request, 'read')
    const clips = await findNamed(visitor, namesIn(request.query.id))
    return reply
      .headers({ 'cache-control': 'private, no-store', 'content-security-policy': "default-src 'none'" })
      .type('text/html; charset=utf-8')
      .send(toText(cardsOf(clips, settingOf(visitor))))
  })

  app.get('/library/delete', { schema: { hide: true, querystring: Query } }, async (request, reply) => {
    const visitor = visitorWith(request, 'delete')
    const clips = await findNamed(visitor, namesIn(request.query.id))
    return sendSignedInPage(reply, site, visitor, {
      ...{ title: libraryWords[visitor.language].deleteTitle, current: '/library' },
      body: deletePage(clips, visitor.formToken, settingOf(visitor)),
    })
  })

  app.post(
    '/library/delete',
    { bodyLimit: MAX_BODY_BYTES, schema: { hide: true, body: DeleteBody } },
    async (request, reply) => {
      const visitor = visitorWith(request, 'delete')
      if (!isOwnForm(visitor, request.body.form_token)) throw apiError('wrong_origin')
      for (const { clip } of await findNamed(visitor, namesIn(request.body.ids.split(',')))) {
        await softDeleteClip(deps, clip.id)
        deps.knownFiles.evict(clip.id)
      }
      return reply.redirect(`${site.baseUrl}/library`, 303)
    },
  )

  app.get<{ Params: { id: string } }>('/library/:id', { schema: { hide: true } }, async (request, reply) => {
    const visitor = visitorWith(request, 'read')
    const { token, language } = visitor
    const clip = await findOwnClip(deps, token, request.params.id)
    const span = { from: monthBefore(now()), to: dayOf(now()) }
    const [[shown], files, views] = await Promise.all([
      showClips(deps, token, [clip], await viewsOf(deps, db, [clip.id])),
      clip.isShowable ? listFiles(db, clip.sourceId) : [],
      config.views.areCounted ? findDays(db, clip.id, span) : undefined,
    ])
    if (!shown) throw apiError('not_found')
    const may = rightsOf(token)
    return sendSignedInPage(reply, site, visitor, {
      ...{ title: nameOf(shown), current: '/library' },
      ...{ styles: ['library.css', 'own-clip.css'], scripts: ['library/own-clip.js'] },
      body: ownClipPage({ shown, files, views, may }, settingOf(visitor)),
      data: {
        ...{ words: ownClipScriptWords[language], failures: failureWords[language], may, id: clip.id },
        ...{ state: shown.state, isPrivate: clip.visibility === 'private' },
      },
    })
  })

  /** Reads a page of the list; a search that cannot be done leaves the page with its words. */
  async function readPage({ token, language }: Visitor, filters: Filters, cursor: string | undefined) {
    try {
      const query = { ...toQuery(filters), token: token.id, cursor, limit: PER_PAGE }
      const { clips, views, nextCursor } = await readOwnClips(deps, token, query)
      return { clips: await showClips(deps, token, clips, views), nextCursor }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'invalid_field') throw error
      return { clips: [], nextCursor: null, problem: libraryWords[language].badSearch }
    }
  }

  /** Clips of the visitor's own token; others are left out. */
  async function findNamed({ token }: Visitor, ids: readonly string[]): Promise<ShownClip[]> {
    const clips = await listClipsById(db, ids, now(), token.id)
    return showClips(
      deps,
      token,
      clips,
      await viewsOf(
        deps,
        db,
        clips.map(({ id }) => id),
      ),
    )
  }

  const settingOf = ({ language }: Visitor): Setting => ({
    ...{ language, formats: formatsOf(language), now: now(), baseUrl: site.baseUrl },
  })
}

const rightsOf = (token: ApiToken) => ({ write: allows(token, 'write'), delete: allows(token, 'delete') })

const namesIn = (given: unknown): string[] =>
  [given]
    .flat()
    .filter((id): id is string => typeof id === 'string' && isClipId(id))
    .slice(0, MOST_NAMED)
