import { findRenditions, insertRenditions } from '../../core/clips/renditions.store.ts'
import { markHeld, markReady, markShowable, originalOf, type SourceRow } from '../../core/sources/sources.store.ts'
import { FIRST_KINDS, MAIN_KINDS, type MainKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { Way } from '../../metrics.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'
import type { FirstFiles } from '../run/encode.ts'
import type { Rendition } from '../run/verify-renditions.ts'
import type { Renditions } from '../transcode/make-renditions.ts'
import { mayQueueExtras } from './add-extras.ts'
import { publish } from './publish-source.ts'
import { SCAN_QUEUE, scanJobOf, tenantOf } from './queues.ts'

/**
 * Stores all files, and marks the source ready or holds it for the scanner. A file that is stored already stays,
 * because its address was published. Returns true when it is ready, and not when another worker was first or the source
 * failed meanwhile.
 */
export async function storeRenditions(
  deps: Deps,
  source: SourceRow,
  renditions: Renditions,
  way: Way | undefined,
): Promise<boolean> {
  const { scanner } = deps.config.moderation
  const isHeld = scanner?.isRequired === true
  const stored = await findRenditions(deps.db, source.id)
  const files = MAIN_KINDS.filter((kind) => !stored[kind]).map((kind) => ({ kind, ...renditions[kind] }))
  const original = originalOf(source)
  const withExtras = await mayQueueExtras(deps, source.id)
  // Housekeeping deletes the original later: a database that loses this commit in a failover needs it again.
  return keepFiles(deps, files.map(toKept), async (trx) => {
    const now = deps.now()
    const { hasAudio, placeholder, info } = renditions
    const facts = { id: source.id, hasAudio, placeholder, info }
    const isMarked = isHeld ? await markHeld(trx, facts) : await markReady(trx, { ...facts, now })
    if (!isMarked) return { references: [], result: false }
    await insertRenditions(trx, source.id, files.map(toRow))
    if (!isHeld) await publish(deps, trx, source.id, withExtras)
    const tenant = tenantOf(source.token_id)
    const last = async () => {
      if (scanner) await deps.queue.send(trx, SCAN_QUEUE.name, scanJobOf(deps, source.id, way), { tenant })
    }
    return { references: files.map(toName), dropped: isHeld ? [] : [original], last, result: !isHeld }
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
