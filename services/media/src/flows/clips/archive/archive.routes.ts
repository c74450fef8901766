// GET and HEAD /media/archive: a file of each of up to 100 clips, as one zip without compression, which video would not
// gain from. All is decided before the first byte; a failure behind it breaks the connection. Tests: archive.test.ts.
import type { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { createSemaphore, type Semaphore } from '@services/common/concurrency/semaphore'
import { inDocument } from '@services/common/http/route-schema'
import { type Static, Type } from 'typebox'
import { fileName } from '../../../core/clip-views/save-as.ts'
import { invalidField } from '../../../core/clips/clip-fields.ts'
import { isClipId } from '../../../core/clips/clip-id.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import { MAIN_KINDS, type MainKind } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { apiError, busy } from '../../../errors.ts'
import { addTokenRoutes, tokenOf } from '../../../http/authenticate.ts'
import { counted, errorResponses, tokenRoute } from '../../../http/shapes.ts'
import { type ArchivedFile, findArchivedFiles } from './archive.store.ts'
import { openZip, type ZipEntry, zipLength } from './zip.ts'

const MAX_CLIPS = 100
const MAX_BYTES = 2_000_000_000

/** Archives under way in this process; each holds a connection and a file. */
const AT_ONCE = 32

const Query = Type.Object({
  ids: Type.String({ description: `Ids of clips, with commas between; at most ${MAX_CLIPS}.` }),
  kind: Type.Optional(Type.Enum(MAIN_KINDS, { description: 'Kind of the files.', ...inDocument({ default: 'mp4' }) })),
})

const Archive = Type.Unsafe<unknown>({
  content: { 'application/zip': { schema: Type.Unsafe({ type: 'string', format: 'binary' }) } },
})

export const archiveRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { blobs, db, now, config, stopping, timeLimits } = deps
  const slots = createSemaphore(
    { atOnce: AT_ONCE, waiting: 0, waitMs: 0, perKey: { atOnce: config.limits.parallel, waiting: 0 } },
    busy,
  )
  const entryOf = (kind: MainKind, names: Set<string>) => {
    return ({ id, title, createdAt: modifiedAt, bytes, sha256 }: ArchivedFile): ZipEntry => ({
      ...{ name: nameAmong(names, fileName(title ?? '', { id, ending: kind })), bytes, modifiedAt },
      open: async () => {
        const file = await blobs.open({ sha256, extension: kind })
        if (!file) throw new Error(`the file ${id}.${kind} is not in the store`)
        return file
      },
    })
  }

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.route<{ Querystring: Static<typeof Query> }>({
      method: ['GET', 'HEAD'],
      url: '/media/archive',
      exposeHeadRoute: false,
      schema: {
        ...tokenRoute('media', 'archiveMedia', 'A file of each of many clips, as a zip'),
        description:
          'Stored without compression, named after the titles. Refused before the first byte if a clip is unknown, of ' +
          'another token, hidden, or has no such file; `details.ids` names these.',
        querystring: Query,
        response: { 200: counted(Archive, 'Content-Disposition'), ...errorResponses(401, 403, 404, 422, 429) },
      },
      handler: async (request, reply) => {
        const token = tokenOf(request)
        const { kind = 'mp4' } = request.query
        const ids = readIds(request.query.ids)
        const tokenId = allows(token, 'admin') ? undefined : token.id
        const found = await findArchivedFiles(db, { ids: ids.filter(isClipId), kind, tokenId, now: now() })
        const entries = requireAll(ids, found).map(entryOf(kind, new Set()))
        const headers = {
          'content-type': 'application/zip',
          'content-length': zipLength(entries),
          'content-disposition': 'attachment; filename="clips.zip"',
          'cache-control': 'private, no-store',
        }
        if (request.method === 'HEAD') return reply.headers(headers).send()
        // The first file is open before headers are set: a failure must not carry them.
        const archive = await openInSlot(slots, token.id, {
          ...{ open: () => openZip(entries), longestMs: timeLimits.archiveMs, stopping },
        })
        return reply.headers(headers).send(archive)
      },
    })
  })
}

const tooLarge = (details: object) =>
  apiError('archive_too_large', { details: { max_clips: MAX_CLIPS, max_bytes: MAX_BYTES, ...details } })

function readIds(text: string): string[] {
  const ids = [...new Set(text.split(',').map((id) => id.trim()))].filter(Boolean)
  if (ids.length === 0) throw invalidField('ids', 'must name at least one clip')
  if (ids.length > MAX_CLIPS) throw tooLarge({ clips: ids.length })
  return ids
}

/** Returns the files in the order of the ids. Throws not_found and archive_too_large. */
function requireAll(ids: readonly string[], found: readonly ArchivedFile[]): ArchivedFile[] {
  const byId = new Map(found.map((file) => [file.id, file]))
  const missing = ids.filter((id) => !byId.has(id))
  if (missing.length > 0) {
    throw apiError('not_found', { message: 'Some of these clips have no such file.', details: { ids: missing } })
  }
  const bytes = found.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > MAX_BYTES) throw tooLarge({ bytes })
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Adds a number to a name that another has, on systems that ignore case, too. */
function nameAmong(taken: Set<string>, name: string): string {
  const [, stem = '', ending = ''] = /^(.*)(\.[^.]*)$/.exec(name) ?? []
  for (let n = 1; ; n++) {
    const unique = n === 1 ? name : `${stem} (${n})${ending}`
    const key = unique.normalize('NFKC').toLowerCase()
    if (taken.has(key)) continue
    taken.add(key)
    return unique
  }
}

interface Opening {
  open: () => Promise<Readable>
  /** A client that takes a byte now and then is not stalled, and would hold its slot as long as it likes. */
  longestMs: number
  stopping: AbortSignal
}

/** Holds a slot from the opening of a stream to its end. Throws queue_full and busy. */
function openInSlot(slots: Semaphore, key: string, { open, longestMs, stopping }: Opening): Promise<Readable> {
  const opened = Promise.withResolvers<Readable>()
  const work = async () => {
    const stream = await open()
    const end = () => void stream.destroy()
    const timer = setTimeout(end, longestMs)
    stopping.addEventListener('abort', end)
    opened.resolve(stream)
    await new Promise((resolve) => stream.once('close', resolve))
    clearTimeout(timer)
    stopping.removeEventListener('abort', end)
  }
  slots.run(work, { key }).catch(opened.reject)
  return opened.promise
}
