// Resumable uploads (tus), from the first byte to the clip. The request that finishes an upload copies and hashes the
// file, and only that copy becomes a clip. A concurrent write changes nothing but the upload.
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { batchesOf } from '@services/common/concurrency/chunks'
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import { type Clip, findClip } from '../../core/clips/clips.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { acceptClip, type NewClipInput } from '../../ingest/accept/accept-clip.ts'
import { countBytesIn } from '../../metrics.ts'
import { writeMeasured } from '../../store/blobs/measure.ts'
import { emptyFile } from './receive-form.http.ts'
import {
  deleteExpiredUploads,
  deleteUploadRow,
  findContinuable,
  findUpload,
  type ResumableUpload,
  setUploadClip,
} from './resumable-uploads.store.ts'

export const isUploadId = (text: string): boolean => /^[0-9A-Za-z]{32}$/.test(text)

/** Shared by all processes: the next piece may arrive at another one. */
const directoryOf = (workDir: string) => join(workDir, 'resumable')

/** Throws not_found for anything but an id: no text of a client becomes a path. */
export function partialPath({ config }: Pick<Deps, 'config'>, id: string): string {
  if (!isUploadId(id)) throw apiError('not_found')
  return join(directoryOf(config.storage.workDir), id)
}

export async function createPartial(deps: Pick<Deps, 'config'>, id: string): Promise<void> {
  await mkdir(directoryOf(deps.config.storage.workDir), { recursive: true, mode: 0o700 })
  await pipeline([], createWriteStream(partialPath(deps, id), { flags: 'wx', mode: 0o600 }))
}

/** Bytes of the partial file; undefined when it is not on this machine. */
export async function partialBytes(deps: Pick<Deps, 'config'>, id: string): Promise<number | undefined> {
  return (await stat(partialPath(deps, id)).catch(() => undefined))?.size
}

/** Deletes row and partial file. False when there was no row. */
export async function hardDeleteUpload(deps: Pick<Deps, 'config' | 'db'>, id: string): Promise<boolean> {
  const wasThere = await deleteUploadRow(deps.db, id)
  await rm(partialPath(deps, id), { force: true })
  return wasThere
}

/** Returns true for a refusal that would be the same later. */
const isFinal = (error: unknown) =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429

/** Makes a clip of a complete upload, once. A final refusal deletes the upload, a temporary one (503, 429) keeps it. */
export async function finishUpload(
  deps: Deps,
  id: string,
  {
    fieldsOf,
    mp4First,
  }: {
    fieldsOf: (metadata: string) => Promise<Pick<NewClipInput, 'fields' | 'access' | 'edit' | 'album'>>
    mp4First: boolean
  },
): Promise<Clip> {
  return deps.mutex.run(`upload ${id}`, async () => {
    const upload = await findUpload(deps.db, id)
    if (!upload) throw apiError('not_found')
    if (upload.clip_id !== null) return findFinished(deps, upload.clip_id)
    const path = deps.work.newPath()
    try {
      const file = await deps.work.withSpace(upload.bytes ?? 0, () =>
        writeMeasured(path, createReadStream(partialPath(deps, id))),
      )
      if (file.bytes === 0) throw emptyFile()
      return await accept(deps, upload, { file, ...(await fieldsOf(upload.metadata)), mp4First })
    } catch (error) {
      if (isFinal(error)) await hardDeleteUpload(deps, id)
      throw error
    } finally {
      await rm(path, { force: true })
    }
  })
}

export const moreThanAnnounced = () =>
  apiError('file_too_large', { message: 'The file is longer than its Upload-Length.' })

/** Stores clip and upload in one transaction: if the process dies before it, the upload can still be finished. */
async function accept(
  deps: Deps,
  { id, token_id: tokenId }: ResumableUpload,
  input: Pick<NewClipInput, 'file' | 'fields' | 'access' | 'edit' | 'album' | 'mp4First'>,
): Promise<Clip> {
  const alongside = async (trx: Transaction<DB>, clip: Clip) => {
    if (!(await setUploadClip(trx, id, clip.id)) && (await findUpload(trx, id))?.clip_id) throw new FinishedElsewhere()
  }
  try {
    const origin = { kind: 'upload', pieces: true } as const
    const clip = await acceptClip(deps, { ...input, tokenId, origin, signal: deps.forceStop, alongside })
    countBytesIn('tus', input.file.bytes)
    await rm(partialPath(deps, id), { force: true })
    return clip
  } catch (error) {
    if (error instanceof FinishedElsewhere) return findFinished(deps, (await findUpload(deps.db, id))?.clip_id)
    throw error
  }
}

/** The transaction of another process was first. */
class FinishedElsewhere extends Error {}

async function findFinished(deps: Deps, clipId: string | null | undefined): Promise<Clip> {
  const clip = clipId ? await findClip(deps.db, clipId, deps.now()) : undefined
  if (!clip || clip.state === 'deleted') throw apiError('gone')
  return clip
}

/** A file exists shortly before its row. */
const YOUNG_MS = 600_000
const BATCH = 500

/** Deletes expired uploads and partial files without a row, in every process: each may have a disk of its own. */
export async function sweepUploads(deps: Pick<Deps, 'config' | 'db' | 'now'>): Promise<void> {
  const expire = () => deleteExpiredUploads(deps.db, deps.now(), BATCH)
  for (let ids = await expire(); ids.length > 0; ids = await expire()) {
    for (const id of ids) await rm(partialPath(deps, id), { force: true })
  }
  const directory = directoryOf(deps.config.storage.workDir)
  const files = (await readdir(directory).catch(() => [])).filter(isUploadId)
  for (const some of batchesOf(files, BATCH)) {
    const needed = new Set(await findContinuable(deps.db, some))
    for (const path of some.filter((id) => !needed.has(id)).map((id) => join(directory, id))) {
      // Another process may delete in the same directory.
      if (await isOld(path)) await rm(path, { force: true })
    }
  }
}

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found !== undefined && Date.now() - found.mtimeMs > YOUNG_MS
}
