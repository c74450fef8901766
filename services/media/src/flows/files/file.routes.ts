// GET and HEAD /f/{id}.{kind}: the files, for any site to use. The one rule: a ready file never changes (`immutable`),
// and its headers make browsers distrust it (contract/media.md 4.8). Tests: test/serving.test.ts,
// test/delivery.test.ts. Next: ranges.ts, store/blobs/.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument, withHeaders } from '@services/common/documented'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { RenditionKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { secondsUntil } from '../../http/lifetime.ts'
import { errorResponses, linkQuery } from '../../http/shapes.ts'
import { type BlobName, type ByteRange, blobKey } from '../../store/blobs/blob-storage.ts'
import { findPublicFile, type PublicFile } from './find-public-file.ts'
import { isNotModified, mayContinue, mayProceed } from './preconditions.ts'
import { openRange, openRanges, parseRanges } from './ranges.ts'
import { saveAs } from './save-as.ts'

/** Files by the extension in the URL. */
const FILES: Record<string, { kind: RenditionKind; type: string }> = {
  gif: { kind: 'gif', type: 'image/gif' },
  jpg: { kind: 'jpg', type: 'image/jpeg' },
  mp4: { kind: 'mp4', type: 'video/mp4' },
  webm: { kind: 'webm', type: 'video/webm' },
  'av1.mp4': { kind: 'av1', type: 'video/mp4' },
  webp: { kind: 'webp', type: 'image/webp' },
}

const binary = { schema: Type.Unsafe({ type: 'string', format: 'binary' }) }
const contentOf = (types: string[]) => Object.fromEntries(types.map((type) => [type, binary]))
const TYPES = [...new Set(Object.values(FILES).map(({ type }) => type))]
const FileBytes = Type.Unsafe<unknown>({ content: contentOf(TYPES) })
/** Several ranges are sent as parts. */
const FilePart = Type.Unsafe<unknown>({ content: contentOf([...TYPES, 'multipart/byteranges']) })
const ProcessingShape = Type.Object(
  { state: Type.Literal('processing'), progress: Type.Number({ description: 'Progress from 0 to 1.' }) },
  { title: 'Processing' },
)
const FILE_HEADERS = ['ETag', 'Last-Modified', 'Accept-Ranges', 'Content-Disposition']

/** Longest that a cache keeps a file. */
const YEAR_SECONDS = 31_536_000

/** A short clip is transcoded in about that time. */
const PROCESSING_RETRY_SECONDS = 2

/**
 * Policy of the document that a browser builds around an opened file: that file, the document's own styles and nothing
 * else. The origin is opaque and no script source is allowed; `allow-scripts` is for Chromium, whose player controls
 * need it. CDNs must send the same: docs/explanation/media/serving-files.md.
 */
const FILE_POLICY =
  "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts"

export const fileRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/f/:id.:kind',
    exposeHeadRoute: false,
    schema: {
      operationId: 'getFile',
      tags: ['files'],
      summary: 'A file of a clip: gif, jpg, mp4 or webm; av1.mp4 and webp if they were made',
      params: Type.Object({
        id: Type.String(),
        kind: Type.String(inDocument({ title: 'FileKind', enum: Object.keys(FILES) })),
      }),
      querystring: Type.Object({
        download: Type.Optional(
          Type.String({
            description: '`1` saves the file, named after the title of the clip.',
            ...inDocument({ enum: ['1'] }),
          }),
        ),
        ...linkQuery,
      }),
      requestHeaders: ['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
      response: {
        200: withHeaders(FileBytes, ...FILE_HEADERS),
        202: withHeaders(ProcessingShape, 'Retry-After'),
        206: withHeaders(FilePart, 'Content-Range', ...FILE_HEADERS),
        302: withHeaders(Type.Null(), 'Location'),
        304: withHeaders(Type.Null(), ...FILE_HEADERS),
        ...errorResponses(404, 410, 412, 416, 429, 451),
      },
    },
    handler: async (request, reply) => {
      // The router splits at the last dot, this at the first: `av1.mp4` is one extension.
      const [, id = '', ending = ''] = /^([^.]*)\.(.*)$/.exec(`${request.params.id}.${request.params.kind}`) ?? []
      const found = Object.hasOwn(FILES, ending) ? FILES[ending] : undefined
      if (!found) throw apiError('not_found')
      const file = await findPublicFile(deps, { id, kind: found.kind, query: request.query })
      if (file.state === 'processing') {
        return reply
          .code(202)
          .header('retry-after', PROCESSING_RETRY_SECONDS)
          .send({ state: 'processing', progress: file.progress })
      }
      deps.visits.note({ id, ...file })
      return sendFile(deps, request, reply, {
        id,
        ending,
        ...found,
        file,
        download: request.query.download === '1',
        now: deps.now(),
      })
    },
  })
}

interface Wanted {
  id: string
  ending: string
  kind: RenditionKind
  type: string
  file: PublicFile & { state: 'ready' }
  download: boolean
  now: Date
}

async function sendFile(deps: Deps, { headers, method }: FastifyRequest, reply: FastifyReply, wanted: Wanted) {
  const { file } = wanted
  const { accelPrefix, site } = deps.config
  if (accelPrefix) return letServerSend(reply, wanted, `${accelPrefix}/${blobKey(nameOf(wanted))}`)
  // Only this service can name a download, and end a link. The redirect is temporary, because the clip may be deleted.
  if (site.filesRedirectUrl && !wanted.download && file.visibility !== 'private') {
    return reply
      .header('cross-origin-resource-policy', 'cross-origin')
      .redirect(`${site.filesRedirectUrl}/${blobKey(nameOf(wanted))}`, 302)
  }
  const validators = { etag: `"${file.sha256}"`, lastModified: file.addedAt }
  if (!mayProceed(headers, validators)) throw apiError('precondition_failed')
  if (isNotModified(headers, validators)) return describeFile(reply, wanted).code(304).send()
  const asked = method === 'GET' && mayContinue(headers, validators) ? headers.range : undefined
  const ranges = parseRanges(asked, file.bytes)
  if (ranges === 'unsatisfiable') {
    reply.header('content-range', `bytes */${file.bytes}`)
    throw apiError('range_not_satisfiable', { details: { bytes: file.bytes } })
  }
  if (method === 'HEAD') return sendHead(deps, reply, wanted)
  return ranges && ranges.length > 1
    ? sendParts(deps, reply, { ...wanted, ranges })
    : sendPart(deps, reply, { ...wanted, range: ranges?.[0] })
}

/** nginx handles ranges, conditions and ETag itself; ours would conflict. */
function letServerSend(reply: FastifyReply, wanted: Wanted, path: string) {
  describeFile(reply, wanted)
  for (const name of ['etag', 'last-modified', 'accept-ranges']) reply.removeHeader(name)
  return reply.header('x-accel-redirect', path).send()
}

/** Answers HEAD like GET, and so checks the store, too. */
async function sendHead({ blobs }: Deps, reply: FastifyReply, wanted: Wanted) {
  const { file } = wanted
  if ((await blobs.stat(nameOf(wanted)))?.bytes !== file.bytes) throw notInStore(wanted)
  return describeFile(reply, wanted).header('content-length', file.bytes).send()
}

// The file is opened before headers are set: a failure must not carry them, above all `immutable`.

async function sendPart({ blobs }: Deps, reply: FastifyReply, { range, ...wanted }: Wanted & { range?: ByteRange }) {
  const { bytes } = wanted.file
  // The whole file is a range too, so that the store refuses a short file before the headers are sent.
  const { start, end } = range ?? { start: 0, end: bytes - 1 }
  const part = await openRange(blobs, nameOf(wanted), { start, end })
  if (!part) throw notInStore(wanted)
  describeFile(reply, wanted)
  if (range) reply.code(206).header('content-range', `bytes ${start}-${end}/${bytes}`)
  return reply.header('content-length', part.length).send(part.body)
}

async function sendParts(
  { blobs, newId }: Deps,
  reply: FastifyReply,
  { ranges, ...wanted }: Wanted & { ranges: ByteRange[] },
) {
  const { bytes } = wanted.file
  const boundary = newId()
  const parts = await openRanges(blobs, nameOf(wanted), { ranges, bytes, type: wanted.type, boundary })
  if (!parts) throw notInStore(wanted)
  return describeFile(reply, wanted)
    .code(206)
    .headers({ 'content-type': `multipart/byteranges; boundary=${boundary}`, 'content-length': parts.length })
    .send(parts.body)
}

const nameOf = ({ kind, file }: Wanted): BlobName => ({ sha256: file.sha256, extension: kind })

const notInStore = ({ id, kind }: Wanted) => new Error(`the ${kind} of clip ${id} is not in the store`)

function describeFile(reply: FastifyReply, { id, ending, type, file, download, now }: Wanted): FastifyReply {
  const audience = file.visibility === 'private' ? 'private' : 'public'
  const seconds = Math.min(YEAR_SECONDS, secondsUntil(file.endsAt, now))
  if (file.visibility !== 'public') reply.header('x-robots-tag', 'noindex')
  return reply.headers({
    'content-type': type,
    'cache-control': `${audience}, max-age=${seconds}, immutable`,
    etag: `"${file.sha256}"`,
    'last-modified': file.addedAt.toUTCString(),
    'accept-ranges': 'bytes',
    'content-disposition': `inline; filename="${id}.${ending}"`,
    // The bytes never change, but the title does.
    ...(download && {
      'cache-control': `${audience}, no-cache`,
      'content-disposition': saveAs(file.title ?? id, { id, ending }),
    }),
    'content-security-policy': FILE_POLICY,
    'cross-origin-resource-policy': 'cross-origin',
  })
}
