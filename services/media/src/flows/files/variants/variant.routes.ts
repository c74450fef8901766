// GET and HEAD /f/{id}/{variant} and /v/{signature}/{options}/{file}: other sizes and formats of a clip's files. The
// clip is found as its files are, so its variants are hidden and removed with it. Tests: test/variants.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { LinkQuery } from '../../../core/clip-access/share-links.ts'
import {
  isStill,
  nameOfVariant,
  parseFixedVariant,
  parseSignedVariant,
  VARIANT_TYPES,
  type Variant,
} from '../../../core/variants/variant.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { secondsUntil } from '../../../http/lifetime.ts'
import { errorResponses } from '../../../http/shapes.ts'
import { findPublicFile, type PublicFile } from '../find-public-file.ts'
import {
  answerProcessing,
  DownloadQuery,
  FILE_REQUEST_HEADERS,
  fileAnswers,
  mayPosterChange,
  sendFile,
} from '../send-file.http.ts'
import { findOrMakeVariant } from './find-or-make-variant.ts'
import { isSigned } from './signature.ts'

const TYPES = [...new Set(Object.values(VARIANT_TYPES).map(({ type }) => type))]
/** Refusals of every request, and of the first for a variant. */
const REFUSALS = [...[404, 410, 412, 416, 451], ...[422, 429, 501, 503, 507]]
/** The clip's file stays, but the clip may be deleted. */
const REDIRECT_SECONDS = 3_600

export const variantRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const common = { exposeHeadRoute: false, method: ['GET', 'HEAD'] as ('GET' | 'HEAD')[] }

  app.route({
    ...common,
    url: '/f/:id/:variant',
    schema: {
      operationId: 'getVariant',
      tags: ['files'],
      summary: 'Another size or format of a clip, made at the first request',
      params: Type.Object({
        id: Type.String(),
        variant: Type.String({
          description:
            '`w160`, `w320`, `w480`, `w640` or `w960` with `.jpg` or `.webp`. `t{seconds}.jpg`, a frame at a multiple of 0.5 s. `w240` or `w320` with `.gif` or `.anim.webp`. `w480.mp4`. `max2m`, `max4m`, `max8m`, `max10m`, `max20m` or `max25m` with `.gif` or `.mp4`, of at most so many megabytes.',
        }),
      }),
      querystring: DownloadQuery,
      requestHeaders: FILE_REQUEST_HEADERS,
      response: { ...fileAnswers(TYPES), ...errorResponses(...REFUSALS) },
    },
    handler: async (request, reply) => {
      const { id, variant: name } = request.params
      const variant = parseFixedVariant(name)
      if (!variant) throw apiError('not_found')
      return answer(deps, request, reply, { id, variant, query: request.query })
    },
  })

  app.route({
    ...common,
    url: '/v/:signature/:options/:file',
    schema: {
      operationId: 'getSignedVariant',
      tags: ['files'],
      summary: 'Any size or format of a clip, by a signed address; needs MEDIA_VARIANT_KEY',
      params: Type.Object({
        signature: Type.String({
          description:
            'First 22 characters of the base64url HMAC-SHA256, under the key, of `/` options `/` id `.` extension.',
        }),
        options: Type.String({
          description:
            '`w:320,h:180,fit:cover,t:1.5,fmt:anim.webp`, each optional, in this order: width, height, `inside` or `cover`, seconds of a frame, format if the extension does not name it.',
        }),
        file: Type.String({ description: 'Id and extension, as in `aB3dE9xK.webp`.' }),
      }),
      querystring: DownloadQuery,
      requestHeaders: FILE_REQUEST_HEADERS,
      response: { ...fileAnswers(TYPES), ...errorResponses(403, ...REFUSALS) },
    },
    handler: async (request, reply) => {
      const { signature, options, file } = request.params
      const { variantKeys } = deps.config
      if (variantKeys.length === 0) throw apiError('not_found')
      if (!isSigned(variantKeys, signature, `/${options}/${file}`)) throw apiError('bad_signature')
      const [, id = '', extension = ''] = /^([^.]*)\.(.*)$/.exec(file) ?? []
      const variant = parseSignedVariant(options, extension)
      if (!variant) throw apiError('invalid_field', { details: { param: 'options' } })
      return answer(deps, request, reply, { id, variant, query: request.query })
    },
  })
}

async function answer(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  { id, variant: named, query }: { id: string; variant: Variant; query: LinkQuery & { download?: string; p?: string } },
) {
  const { config, limits, newId } = deps
  const { ending } = named
  const { type, extension, original } = VARIANT_TYPES[ending]
  // The link to a poster shows no other frame.
  const kind = named.atSeconds === undefined ? original : 'mp4'
  const clip = await findPublicFile(deps, { id, kind, query })
  if (clip.state === 'processing') return answerProcessing(reply, clip.progress)
  const showsPoster = isStill(named) && named.atSeconds === undefined
  const isChosen = showsPoster && clip.posterAt !== null
  const variant: Variant = isChosen ? { ...named, atSeconds: clip.posterAt as number, isPoster: true } : named
  const found = await findOrMakeVariant(deps, {
    id,
    variant,
    // Unknown addresses share no slot, as one caller could take it from all.
    callerKey: config.limits.header === undefined ? newId() : limits.keyOf(request),
    countBuild: () => limits.countVariant(request),
  })
  if (found.state === 'processing') return answerProcessing(reply, found.progress)
  deps.visitLog.record({ id, ...clip })
  if (found.state === 'original') return redirectToFile(deps, reply, { id, original, query, clip })
  const options = nameOfVariant(named).slice(0, -ending.length - 1)
  const mayChange = showsPoster && mayPosterChange(clip, query.p)
  const file = { ...clip, sha256: found.sha256, bytes: found.bytes, mayChange }
  return sendFile(deps, request, reply, {
    name: `${id}-${options}`,
    ending,
    extension,
    type,
    file,
    download: query.download === '1',
  })
}

/** Keeps the query: the link is one of this file. */
function redirectToFile(
  { config, now }: Deps,
  reply: FastifyReply,
  { id, original, query, clip }: { id: string; original: string; query: object; clip: PublicFile },
) {
  const audience = clip.visibility === 'private' ? 'private' : 'public'
  const seconds = Math.min(REDIRECT_SECONDS, secondsUntil(clip.endsAt, now()))
  const kept = new URLSearchParams(
    Object.entries(query).filter(([name]) => ['download', 'a', 'e', 's', 'p'].includes(name)),
  )
  if (clip.visibility !== 'public') reply.header('x-robots-tag', 'noindex')
  return reply
    .headers({
      'cache-control': `${audience}, max-age=${seconds}`,
      'cross-origin-resource-policy': 'cross-origin',
    })
    .redirect(`${config.site.filesBaseUrl}/f/${id}.${original}${kept.size > 0 ? `?${kept}` : ''}`, 302)
}
