import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../../config.ts'
import { findShownAlbum } from '../../core/albums/find-public-album.ts'
import { findCover } from '../../core/albums/shown-items.store.ts'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery, PublicAddress } from '../../core/clip-access/share-links.ts'
import { toView } from '../../core/clip-views/clip-view.ts'
import { RENDITION_KINDS } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { cacheOfClip, isKnown } from '../../http/etag.ts'
import { errorResponses, linkQuery } from '../../http/shapes.ts'
import { albumOembed } from './album/album-oembed.ts'
import { toAlbumView } from './album/album-view.ts'
import { OEMBED_CONTENT_TYPE, oembed, oembedXml, parseOembedQuery } from './oembed.ts'

const optional = (description: string, members: Parameters<typeof inDocument>[0]) =>
  Type.Optional(Type.Unknown({ ...(description && { description }), ...inDocument(members) }))

/** Documentation only: `parseOembedQuery` reads the query and tolerates common mistakes of consumers. */
const Query = Type.Object({
  format: optional('', { type: 'string', enum: ['json', 'xml'], default: 'json' }),
  maxwidth: optional('Width in pixels; 960 if absent or larger.', { type: 'integer', minimum: 1 }),
  maxheight: optional('Height in pixels; 640 if absent or larger.', { type: 'integer', minimum: 1 }),
})
const AddressQuery = Type.Object({
  url: optional('Address of a page, player or file of this service, of a clip or an album.', {
    type: 'string',
    format: 'uri',
    required: true,
  }),
  ...Query.properties,
})

/** Documentation only: oembed.ts writes the answers. */
const OembedShape = Type.Object(
  {
    type: Type.Union([Type.Literal('video'), Type.Literal('rich')], { description: '`rich` for an album.' }),
    version: Type.Literal('1.0'),
    html: Type.String(),
    width: Type.Integer(),
    height: Type.Integer(),
  },
  { title: 'Oembed', additionalProperties: true, description: 'https://oembed.com' },
)
const OembedAnswer = Type.Unsafe<string>({
  content: { 'application/json': { schema: OembedShape }, 'text/xml': { schema: Type.String() } },
})
const described = (operationId: string, summary: string) => ({
  ...{ operationId, summary },
  tags: ['pages'],
  requestHeaders: ['If-None-Match'],
})
const answers = { 200: withHeaders(OembedAnswer, 'ETag'), 304: withHeaders(Type.Null(), 'ETag') }

export const oembedRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site } = deps.config

  app.get(
    '/oembed/:id',
    {
      schema: {
        ...described('getOembed', 'oEmbed of a clip'),
        params: Type.Object({ id: Type.String() }),
        querystring: Type.Object({ ...Query.properties, ...linkQuery }),
        response: { ...answers, ...errorResponses(404, 410, 429, 451, 501) },
      },
    },
    async (request, reply) => {
      const query = request.query as LinkQuery
      return answer(request, reply, request.params.id, { target: 'oembed', query })
    },
  )

  app.get(
    '/oembed',
    {
      schema: {
        ...described('findOembed', 'oEmbed of an address'),
        querystring: AddressQuery,
        response: { ...answers, ...errorResponses(400, 404, 410, 429, 451, 501) },
      },
    },
    async (request, reply) => {
      const { url } = request.query
      if (typeof url !== 'string' || url === '') {
        throw apiError('invalid_request', { message: 'expecting value "url"', details: { param: 'url' } })
      }
      const found = subjectOf(url, site)
      if (!found) throw apiError('not_found')
      return (found.isAlbum ? answerOfAlbum : answer)(request, reply, found.id, found)
    },
  )

  async function answer(request: FastifyRequest, reply: FastifyReply, id: string, address: PublicAddress) {
    const limits = parseOembedQuery(request.query as Record<string, unknown>)
    const { clip, link } = await findShownClip(deps, id, { ...address, shows: 'embed' })
    if (clip.state === 'failed') throw apiError('not_found')
    const body = oembed(toView(clip, site, link), limits, deps.now())
    return send(request, reply, body, { ...limits, isReady: clip.state === 'ready', isLinked: link !== undefined })
  }

  async function answerOfAlbum(request: FastifyRequest, reply: FastifyReply, id: string, address: PublicAddress) {
    const limits = parseOembedQuery(request.query as Record<string, unknown>)
    const now = deps.now()
    const shown = await findShownAlbum(deps, id, { ...address, shows: 'embed' }, (db, album) =>
      findCover(db, album, now),
    )
    const body = albumOembed(toAlbumView(shown, site), shown.found && toView(shown.found, site), limits, now)
    return send(request, reply, body, { ...limits, isReady: true, isLinked: shown.link !== undefined })
  }

  function send(request: FastifyRequest, reply: FastifyReply, body: object, { format, isReady, isLinked }: Sent) {
    const text = format === 'json' ? JSON.stringify(body) : oembedXml(body)
    reply.header('cache-control', cacheOfClip({ isReady, isLinked }))
    if (isReady && isKnown(request, reply, text)) return reply.code(304).send()
    return reply.type(OEMBED_CONTENT_TYPE[format]).send(text)
  }
}

interface Sent {
  format: keyof typeof OEMBED_CONTENT_TYPE
  isReady: boolean
  isLinked: boolean
}

const kindOf = (ending: string) => RENDITION_KINDS.find((kind) => kind === ending.replace('av1.mp4', 'av1'))

/**
 * Finds the clip or album in a URL of a page, player or file, with either scheme: old or typed URLs may have the other.
 * The address of a private one has a link; that of a file shows no player.
 */
function subjectOf(
  address: string,
  { baseUrl, filesBaseUrl }: Config['site'],
): ({ id: string; isAlbum?: true } & PublicAddress) | undefined {
  const url = URL.parse(address)
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  const pathUnder = (base: string) => {
    const { host, pathname } = new URL(base)
    const start = pathname.replace(/\/$/, '')
    return url.host === host && url.pathname.startsWith(`${start}/`) ? url.pathname.slice(start.length) : undefined
  }
  const query = Object.fromEntries(url.searchParams)
  const path = pathUnder(baseUrl) ?? ''
  const [, ofAlbum, player] = /^\/a\/([0-9A-Za-z]+)(\/embed)?\/?$/.exec(path) ?? []
  if (ofAlbum) return { id: ofAlbum, isAlbum: true, target: player ? 'embed' : 'page', query }
  const [, page, ofPage] = /^\/(gif|embed)\/([0-9A-Za-z]+)\/?$/.exec(path) ?? []
  if (ofPage) return { id: ofPage, target: page === 'gif' ? 'page' : 'embed', query }
  const [, ofFile, ending = ''] = /^\/f\/([0-9A-Za-z]+)\.([\w.]+)$/.exec(pathUnder(filesBaseUrl) ?? '') ?? []
  return ofFile ? { id: ofFile, target: kindOf(ending) ?? 'page', query } : undefined
}
