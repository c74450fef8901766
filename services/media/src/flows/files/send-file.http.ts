// Sends stored files: those of clips and their variants. The headers are set when the file is open, so that a failure
// carries none of them. Tests: test/serving.test.ts, test/delivery.test.ts.
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { saveAs } from '../../core/clip-views/save-as.ts'
import type { OwnPoster } from '../../core/clips/renditions.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { secondsUntil } from '../../http/lifetime.ts'
import { linkQuery } from '../../http/shapes.ts'
import { type BlobName, type ByteRange, blobKey } from '../../store/blobs/blob-storage.ts'
import type { PublicFile } from './find-public-file.ts'
import { isNotModified, mayContinue, mayProceed } from './preconditions.ts'
import { openRange, openRanges, parseRanges } from './ranges.ts'

const binary = { schema: Type.Unsafe({ type: 'string', format: 'binary' }) }
const contentOf = (types: string[]) => Object.fromEntries(types.map((type) => [type, binary]))
const ProcessingShape = Type.Object(
  { state: Type.Literal('processing'), progress: Type.Number({ description: 'Progress from 0 to 1.' }) },
  { title: 'Processing' },
)
const FILE_HEADERS = ['ETag', 'Last-Modified', 'Accept-Ranges', 'Content-Disposition']

/** Documentation of the answers with files of these types; each has the further headers. */
export const fileAnswers = (types: string[], headers: string[] = []) => ({
  200: withHeaders(Type.Unsafe<unknown>({ content: contentOf(types) }), ...FILE_HEADERS, ...headers),
  202: withHeaders(ProcessingShape, 'Retry-After', ...headers),
  // Several ranges are sent as parts.
  206: withHeaders(
    Type.Unsafe<unknown>({ content: contentOf([...types, 'multipart/byteranges']) }),
    'Content-Range',
    ...FILE_HEADERS,
    ...headers,
  ),
  302: withHeaders(Type.Null(), 'Location', ...headers),
  304: withHeaders(Type.Null(), ...FILE_HEADERS, ...headers),
})

export const FILE_REQUEST_HEADERS = [
  ...['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
]

export const DownloadQuery = Type.Object({
  p: Type.Optional(Type.String({ description: 'Number of a poster, which caches keep.' })),
  download: Type.Optional(
    Type.String({
      description: '`1` saves the file, named after the title of the clip.',
      ...inDocument({ enum: ['1'] }),
    }),
  ),
  ...linkQuery,
})

/** Whether an address of a poster, with the number `p` of a change, may show another one later. */
export const mayPosterChange = ({ posterNumber }: Pick<OwnPoster, 'posterNumber'>, p: string | undefined): boolean =>
  posterNumber > 0 && p !== String(posterNumber)

/** Longest that a cache keeps a file. */
const YEAR_SECONDS = 31_536_000

/** The plain address of a poster that was changed shows the newest one. */
const NEWEST_SECONDS = 300

/** A short clip is transcoded in about that time. */
const PROCESSING_RETRY_SECONDS = 2

export const answerProcessing = (reply: FastifyReply, progress: number): FastifyReply =>
  reply.code(202).header('retry-after', PROCESSING_RETRY_SECONDS).send({ state: 'processing', progress })

/**
 * Policy of the document that a browser builds around an opened file: that file, the document's own styles and nothing
 * else. The origin is opaque and no script source is allowed; `allow-scripts` is for Chromium, whose player controls
 * need it. CDNs must send the same: docs/explanation/media/serving-files.md.
 */
const FILE_POLICY =
  "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts"

export interface Wanted {
  /** Name of the file without its ending: the id, and the options of a variant. */
  name: string
  ending: string
  /** Extension of the blob. */
  extension: string
  type: string
  /** `endsAt`: see find-public-file.ts. */
  file: Pick<PublicFile & { state: 'ready' }, 'sha256' | 'bytes' | 'addedAt' | 'title' | 'visibility' | 'endsAt'> & {
    /** True for an address that shows the newest of several posters. */
    mayChange?: boolean
  }
  download: boolean
}

type Sent = Wanted & { now: Date }

/** Answers with a stored file, or a redirect to it: conditions, ranges, HEAD, and the headers of all files. */
export async function sendFile(deps: Deps, { headers, method }: FastifyRequest, reply: FastifyReply, input: Wanted) {
  const wanted = { ...input, now: deps.now() }
  const { file } = wanted
  const { accelPrefix, site } = deps.config
  if (file.visibility !== 'public') reply.header('x-robots-tag', 'noindex')
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
  const range = method === 'GET' && mayContinue(headers, validators) ? headers.range : undefined
  const ranges = parseRanges(range, file.bytes)
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
function letServerSend(reply: FastifyReply, wanted: Sent, path: string) {
  describeFile(reply, wanted)
  for (const name of ['etag', 'last-modified', 'accept-ranges']) reply.removeHeader(name)
  return reply.header('x-accel-redirect', path).send()
}

/** Answers HEAD like GET, and so checks the store, too. */
async function sendHead({ blobs }: Deps, reply: FastifyReply, wanted: Sent) {
  const { file } = wanted
  if ((await blobs.stat(nameOf(wanted)))?.bytes !== file.bytes) throw notInStore(wanted)
  return describeFile(reply, wanted).header('content-length', file.bytes).send()
}

// The file is opened before headers are set: a failure must not carry them, above all `immutable`.

async function sendPart({ blobs }: Deps, reply: FastifyReply, { range, ...wanted }: Sent & { range?: ByteRange }) {
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
  { ranges, ...wanted }: Sent & { ranges: ByteRange[] },
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

const nameOf = ({ extension, file }: Sent): BlobName => ({ sha256: file.sha256, extension })

const notInStore = ({ name, ending }: Sent) => new Error(`the file ${name}.${ending} is not in the store`)

function describeFile(reply: FastifyReply, { name, ending, type, file, download, now }: Sent): FastifyReply {
  const audience = file.visibility === 'private' ? 'private' : 'public'
  const seconds = Math.min(file.mayChange ? NEWEST_SECONDS : YEAR_SECONDS, secondsUntil(file.endsAt, now))
  return reply.headers({
    'content-type': type,
    'cache-control': `${audience}, max-age=${seconds}${file.mayChange ? '' : ', immutable'}`,
    etag: `"${file.sha256}"`,
    'last-modified': file.addedAt.toUTCString(),
    'accept-ranges': 'bytes',
    'content-disposition': `inline; filename="${name}.${ending}"`,
    // The bytes never change, but the title does.
    ...(download && {
      'cache-control': `${audience}, no-cache`,
      'content-disposition': saveAs(file.title ?? name, { id: name, ending }),
    }),
    'content-security-policy': FILE_POLICY,
    'cross-origin-resource-policy': 'cross-origin',
  })
}
