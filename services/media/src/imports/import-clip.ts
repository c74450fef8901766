import { rm } from 'node:fs/promises'
import { ApiError } from '@services/common/errors'
import { type AcceptedClip, acceptClip, type NewClipInput } from '../clips/accept-clip.ts'
import type { ClipFields } from '../clips/clip-fields.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'

export interface ImportInput {
  url: string
  fields: ClipFields
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
 * Fetches the file at an address through the guard and makes a clip of it. Throws source_forbidden, source_fetch_failed
 * (`details.upstream` says how), unsupported_site_content for a page, busy, and what an upload of the same file would.
 */
export async function importClip(deps: Deps, input: ImportInput): Promise<AcceptedClip> {
  const { url, fields, tokenId, startedAt, clientGone, alongside } = input
  const { maxBytes } = deps.config.source
  const signal = AbortSignal.any([deps.hurry, clientGone])
  const fetchFile = () => {
    const leftMs = startedAt + deps.config.syncWaitSeconds * 1000 - Date.now()
    const totalMs = Math.max(FETCH_AT_LEAST_MS, leftMs)
    return deps.work.withSpace(maxBytes, () => deps.remote.fetchToFile(url, path, { maxBytes, signal, totalMs }))
  }
  const path = deps.work.newPath()
  try {
    const file = await deps.downloads.run(fetchFile, { key: tokenId, signal })
    if (file.bytes === 0) throw apiError('unsupported_site_content', { cause: 'the body was empty' })
    try {
      return await acceptClip(deps, {
        file: { ...file, path },
        fields,
        tokenId,
        origin: { kind: 'import', url },
        signal,
        ...(alongside && { alongside }),
      })
    } catch (error) {
      const isPage = /^(text\/html|application\/xhtml\+xml)$/.test(file.contentType ?? '')
      throw isPage && isUnsupported(error) ? apiError('unsupported_site_content', { cause: error }) : error
    }
  } finally {
    await rm(path, { force: true })
  }
}

const isUnsupported = (error: unknown) => error instanceof ApiError && error.code === 'unsupported_media_type'
