import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { type Static, Type } from 'typebox'
import { invalidField, oneLine, tagKey } from '../../core/clips/clip-fields.ts'
import { allows } from '../../core/tokens/scopes.ts'
import type { ApiToken } from '../../core/tokens/tokens.store.ts'
import { viewsOf } from '../../core/views/find-views.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { DetailsShape, toDetails } from '../../http/clip-details.ts'
import { linkToNext, pageOf, pageQuery } from '../../http/cursor.ts'
import { answers, tokenRoute } from '../../http/shapes.ts'
import type { ClipFilter } from './clip-lists.store.ts'
import { readList } from './read-list.ts'
import { SORTS } from './search/position.ts'

const Query = Type.Object({
  ...pageQuery,
  q: Type.Optional(
    Type.String({
      description:
        'Words of title, tags or author: all of them, the last one by its beginning. Case and accents are ignored.',
    }),
  ),
  sort: Type.Optional(
    Type.Union(
      SORTS.map((sort) => Type.Literal(sort)),
      {
        description: '`bytes` are those of the source; `views` of all kinds and days.',
        ...inDocument({ default: 'created' }),
      },
    ),
  ),
  order: Type.Optional(
    Type.Union([Type.Literal('asc'), Type.Literal('desc')], {
      description: 'Descending if absent; `sort=title` ascending.',
    }),
  ),
  from: Type.Optional(
    Type.String({ description: 'Earliest time of the upload or import: a day in UTC, or a time (RFC 3339).' }),
  ),
  to: Type.Optional(Type.String({ description: 'Time before which the clip was added.' })),
  tag: Type.Optional(Type.String({ description: 'Case is ignored.' })),
  state: Type.Optional(Type.Union([Type.Literal('processing'), Type.Literal('ready'), Type.Literal('failed')])),
  nsfw: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], inDocument({ anyOf: undefined, type: 'boolean' })),
  ),
  token: Type.Optional(
    Type.String({ description: 'For admins: clips of one token, or `none` for clips without a token.' }),
  ),
})

/** GET /media: the token's clips; admins see all clips. */
export const listRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'read' })
  app.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
  app.get(
    '/media',
    {
      schema: {
        ...tokenRoute('media', 'listMedia', 'Your clips, newest first'),
        description:
          'The header `Link` with `rel="next"` leads to the next page. A page of a search or of a sorted list may have fewer ' +
          'entries than `limit`, or none, and yet a next page.',
        querystring: Query,
        response: answers(200, pageOf(DetailsShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { query } = request
      const filter = readFilter(query, tokenOf(request), deps.now())
      const { clips, nextCursor, views } = await deps.reads.current(async (db) => {
        const read = await readList(db, { ...query, filter })
        return {
          ...read,
          views: await viewsOf(
            deps,
            db,
            read.clips.map(({ id }) => id),
          ),
        }
      })
      const { site } = deps.config
      if (nextCursor) {
        const { limit, q, sort, order, from, to, tag, state, nsfw, token } = query
        const next = { limit, q, sort, order, from, to, tag, state, nsfw, token, cursor: nextCursor }
        reply.header('link', linkToNext(site.baseUrl, '/media', next))
      }
      return {
        success: {
          items: clips.map(({ files, ...clip }) =>
            toDetails(clip, clip.isShowable ? files : [], site, views.get(clip.id)),
          ),
          next_cursor: nextCursor,
        },
      }
    },
  )
}

type ListQuery = Static<typeof Query>

function readFilter({ tag, state, nsfw, token, from, to }: ListQuery, caller: ApiToken, now: Date): ClipFilter {
  const filter = {
    tokenId: ownerOf(caller, token),
    tagKey: tag === undefined ? undefined : tagKey(oneLine(tag)),
    state,
    nsfw: nsfw === undefined ? undefined : nsfw === 'true',
    from: readTime('from', from),
    to: readTime('to', to),
    now,
  }
  if (filter.from && filter.to && filter.from >= filter.to) throw invalidField('to', 'must be later than from')
  return filter
}

/** A day of UTC, or a time of RFC 3339; a `+` that is not encoded arrives as a blank. */
const TIME = /^([12]\d{3}-\d\d-\d\d)(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+ -]\d\d:\d\d))?$/i

function readTime(param: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const [, day] = TIME.exec(text) ?? []
  const isDay = day !== undefined && new Date(`${day}T00:00Z`).toJSON()?.startsWith(day) === true
  const time = new Date(text.replace(' ', '+'))
  if (!isDay || Number.isNaN(time.getTime())) {
    throw invalidField(param, 'must be a day, as in 2026-11-30, or a time, as in 2026-11-30T09:00:00Z')
  }
  return time
}

function ownerOf(caller: ApiToken, requested: string | undefined): string | null | undefined {
  if (!allows(caller, 'admin')) {
    if (requested === undefined || requested === caller.id) return caller.id
    throw apiError('insufficient_scope', { details: { scope: 'admin' } })
  }
  if (requested === 'none') return null
  if (requested !== undefined && !isUuid(requested)) throw invalidField('token', 'must be the id of a token, or none')
  return requested
}
