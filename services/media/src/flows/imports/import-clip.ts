import { rm } from 'node:fs/promises'
import { counted } from '@services/common/instruments'
import { type ClipFields, fillFields } from '../../core/clips/clip-fields.ts'
import type { Deps } from '../../deps.ts'
import { type AcceptedClip, acceptClip, type NewClipInput } from '../../ingest/accept/accept-clip.ts'
import { siteOf } from '../../ingest/sites/sites.ts'
import { countBytesIn, countImport } from '../../metrics.ts'
import { receiveSource } from './receive-source.ts'

export interface ImportInput {
  url: string
  fields: ClipFields
  /** Whether the caller said it, or it is the default. */
  given: { nsfw: boolean }
  tokenId: string
  /** When the request came, in ms: the caller wants an answer within SYNC_WAIT of it. */
  startedAt: number
  /** The client's going away: until the clip is accepted nothing is done for nobody. */
  clientGone: AbortSignal
  alongside?: NewClipInput['alongside']
}

/** A source gets this long also where the service hardly waits for its files. */
const FETCH_AT_LEAST_MS = 10_000

/**
 * Fetches the file at an address, or the one behind the page there, through the guard and makes a clip of it. What the
 * caller did not say is taken from the page. Throws busy, what `receiveSource` does, and what an upload of the same file would.
 */
export async function importClip(deps: Deps, input: ImportInput): Promise<AcceptedClip> {
  const site = (URL.canParse(input.url) && siteOf(new URL(input.url))?.site.name) || 'other'
  return counted(
    (result) => countImport(site, result),
    () => receiveAndAccept(deps, input),
  )
}

async function receiveAndAccept(deps: Deps, input: ImportInput): Promise<AcceptedClip> {
  const { url, fields, given, tokenId, startedAt, clientGone, alongside } = input
  const { maxBytes } = deps.config.source
  const signal = AbortSignal.any([deps.hurry, clientGone])
  const path = deps.work.newPath()
  const receive = () => {
    const leftMs = startedAt + deps.config.syncWaitSeconds * 1000 - Date.now()
    const endsAt = performance.now() + Math.max(FETCH_AT_LEAST_MS, leftMs)
    return deps.work.withSpace(maxBytes, () =>
      receiveSource(deps, url, { path, maxBytes, signal, endsAt, key: tokenId }),
    )
  }
  try {
    const { file, about } = await deps.downloads.run(receive, { key: tokenId, signal })
    countBytesIn('import', file.bytes)
    return await acceptClip(deps, {
      file: { ...file, path },
      fields: about ? fillFields(fields, given, about) : fields,
      tokenId,
      origin: { kind: 'import', url },
      signal,
      alongside,
    })
  } finally {
    await rm(path, { force: true })
  }
}
