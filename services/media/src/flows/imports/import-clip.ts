import { rm } from 'node:fs/promises'
import { counted } from '@services/common/telemetry/instruments'
import type { AccessChanges } from '../../core/clips/access.ts'
import { type ClipFields, fillFields } from '../../core/clips/clip-fields.ts'
import type { Edit } from '../../core/edits/edit.ts'
import type { Deps } from '../../deps.ts'
import { type AcceptedClip, acceptClip, type NewClipInput } from '../../ingest/accept/accept-clip.ts'
import { siteOf } from '../../ingest/sites/sites.ts'
import { countBytesIn, countImport } from '../../metrics.ts'
import { receiveSource } from './receive-source.ts'

export interface ImportInput {
  url: string
  fields: ClipFields
  access?: AccessChanges
  edit?: Edit | undefined
  album?: string | undefined
  /** True for fields that the caller set. */
  given: { nsfw: boolean }
  tokenId: string
  /** Time of the request in ms; it is answered within SYNC_WAIT. */
  startedAt: number
  /** Aborts the import when the client disconnects before the clip is accepted. */
  clientGone: AbortSignal
  alongside?: NewClipInput['alongside']
  mp4First?: boolean
}

/** Least time to fetch a source, however short SYNC_WAIT is. */
const FETCH_AT_LEAST_MS = 10_000

/**
 * Makes a clip of the file at a URL, or of the one that the page there shows. Fields that the caller left out come from
 * the page. Throws busy, and the errors of `receiveSource` and of an upload.
 */
export async function importClip(deps: Deps, input: ImportInput): Promise<AcceptedClip> {
  const site = (URL.canParse(input.url) && siteOf(new URL(input.url))?.site.name) || 'other'
  return counted(
    (result) => countImport(site, result),
    () => receiveAndAccept(deps, input),
  )
}

async function receiveAndAccept(deps: Deps, input: ImportInput): Promise<AcceptedClip> {
  const { url, fields, access, edit, album, given, tokenId, startedAt, clientGone, alongside, mp4First } = input
  const { maxBytes } = deps.config.source
  const signal = AbortSignal.any([deps.forceStop, clientGone])
  const path = deps.work.newPath()
  const receive = () => {
    const leftMs = startedAt + deps.config.syncWaitSeconds * 1000 - Date.now()
    const endsAt = performance.now() + Math.max(FETCH_AT_LEAST_MS, leftMs)
    return deps.work.withSpace(maxBytes, () =>
      receiveSource(deps, url, { path, maxBytes, signal, endsAt, key: tokenId, edit }),
    )
  }
  try {
    const { file, about, missingSeconds } = await deps.downloads.run(receive, { key: tokenId, signal })
    countBytesIn('import', file.bytes)
    return await acceptClip(deps, {
      file: { ...file, path },
      fields: about ? fillFields(fields, given, about) : fields,
      edit: edit && missingSeconds !== undefined ? { ...edit, missingSeconds } : edit,
      ...(access && { access }),
      album,
      tokenId,
      origin: { kind: 'import', url },
      signal,
      alongside,
      mp4First,
    })
  } finally {
    await rm(path, { force: true })
  }
}
