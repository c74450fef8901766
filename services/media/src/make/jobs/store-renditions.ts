import { findRenditions, insertRenditions } from '../../core/clips/renditions.store.ts'
import { markReady, markShowable, originalOf, type SourceRow } from '../../core/clips/sources.store.ts'
import { emitEvent } from '../../core/webhooks/emit-event.ts'
import { FIRST_KINDS, MAIN_KINDS, type MainKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'
import type { FirstFiles } from '../transcode/encode.ts'
import type { Renditions } from '../transcode/make-renditions.ts'
import type { Rendition } from '../transcode/verify-renditions.ts'
import { mayQueueExtras, queueExtras } from './add-extras.ts'

/**
 * Stores all files and marks the source ready. A file that is stored already stays, because its address was published.
 * Returns false when another worker was first or the source failed meanwhile.
 */
export async function storeRenditions(deps: Deps, source: SourceRow, renditions: Renditions): Promise<boolean> {
  const stored = await findRenditions(deps.db, source.id)
  const files = MAIN_KINDS.filter((kind) => !stored[kind]).map((kind) => ({ kind, ...renditions[kind] }))
  const original = originalOf(source)
  const withExtras = await mayQueueExtras(deps, source.id)
  // Housekeeping deletes the original later: a database that loses this commit in a failover needs it again.
  return keepFiles(deps, files.map(toKept), async (trx) => {
    const now = deps.now()
    const { hasAudio, placeholder } = renditions
    const isMarked = await markReady(trx, { id: source.id, hasAudio, placeholder, now })
    if (!isMarked) return { references: [], result: false }
    await insertRenditions(trx, source.id, files.map(toRow))
    await deps.announcements.send(trx, source.id)
    await emitEvent(deps, trx, 'media.ready', { sourceId: source.id })
    if (withExtras) await queueExtras(deps, trx, source.id)
    return { references: files.map(toName), dropped: [original], result: true }
  })
}

/** Returns the function that stores the first files; undefined if an earlier attempt has stored them. */
export async function firstFilesOf(deps: Deps, source: SourceRow) {
  const { mp4 } = await findRenditions(deps.db, source.id)
  if (mp4) return undefined
  return (files: FirstFiles) =>
    storeFirstFiles(deps, source.id, files).catch((err) => {
      deps.log.warn({ err, sourceId: source.id }, 'first files not stored: they follow with the others')
    })
}

async function storeFirstFiles(deps: Deps, id: string, { hasAudio, placeholder, ...made }: FirstFiles): Promise<void> {
  const files = FIRST_KINDS.map((kind) => ({ kind, ...made[kind] }))
  await keepFiles(deps, files.map(toKept), async (trx) => {
    if (!(await markShowable(trx, { id, hasAudio, placeholder }))) return { references: [], result: undefined }
    await insertRenditions(trx, id, files.map(toRow))
    await deps.announcements.send(trx, id)
    return { references: files.map(toName), result: undefined }
  })
}

type File = Rendition & { kind: MainKind }

const toName = ({ kind, sha256 }: File) => ({ sha256, extension: kind })

const toKept = (file: File) => ({ name: toName(file), path: file.path, bytes: file.bytes })

const toRow = ({ path: _, ...file }: File) => file
