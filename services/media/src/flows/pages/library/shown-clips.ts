import { createLink } from '../../../core/clip-access/share-links.ts'
import { type ClipView, toView } from '../../../core/clip-views/clip-view.ts'
import { type Clip, ownerState } from '../../../core/clips/clips.store.ts'
import type { ClipFile } from '../../../core/clips/renditions.store.ts'
import { allows } from '../../../core/tokens/scopes.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import type { ViewCounts, ViewSummary } from '../../../core/views/views.store.ts'
import type { Deps } from '../../../deps.ts'
import { giveLinkSalts, listWaiting } from './own-clips.store.ts'

/** A clip as its owner sees it. */
export interface ShownClip {
  clip: Clip
  view: ClipView
  state: 'processing' | 'ready' | 'failed' | 'hidden'
  /** Picture of the width of a card, while there is one. */
  poster: string | undefined
  /** Place among the waiting clips of the token, from 1. */
  place: number | undefined
  views: ViewSummary | undefined
}

/** One clip with all that its own page shows. */
export interface OwnClip {
  shown: ShownClip
  files: readonly ClipFile[]
  /** Absent while none are counted. */
  views: { days: (ViewCounts & { day: string })[]; total: ViewCounts } | undefined
  may: { write: boolean; delete: boolean }
}

/** Span in which a clip has the same addresses, so that a browser keeps the pictures. They are good for up to two. */
const MAKER_SPAN_MS = 3_600_000

/** The same for a token that makes no links: an address that leaves its page ends soon. */
const VIEWER_SPAN_MS = 10 * 60_000

/**
 * Adds the addresses of files; those of private clips are signed. A token that may make links of them gets the address
 * of their page, too. Any other token gets player and files alone: the page would be a link that no token made.
 */
export async function showClips(
  deps: Pick<Deps, 'db' | 'config' | 'now'>,
  token: ApiToken,
  clips: readonly Clip[],
  views: ReadonlyMap<string, ViewSummary>,
): Promise<ShownClip[]> {
  const { site, encryptionKey } = deps.config
  const unsigned = clips.filter(({ visibility, linkSalt }) => visibility === 'private' && !linkSalt)
  const salts =
    unsigned.length > 0
      ? await giveLinkSalts(
          deps.db,
          unsigned.map(({ id }) => id),
        )
      : new Map()
  const waiting = await findWaiting(deps, clips)
  const endAfter = (spanMs: number) => new Date((Math.floor(deps.now().getTime() / spanMs) + 2) * spanMs)
  const forMaker = { target: 'page', expiresAt: endAfter(MAKER_SPAN_MS) } as const
  const forViewer = { target: 'embed', expiresAt: endAfter(VIEWER_SPAN_MS) } as const
  return clips.map((clip) => {
    const key = { id: clip.id, linkSalt: clip.linkSalt ?? salts.get(clip.id) ?? null }
    const makesLinks = clip.tokenId === token.id && allows(token, 'write')
    const link =
      clip.visibility === 'private' ? createLink(encryptionKey, key, makesLinks ? forMaker : forViewer) : undefined
    const view = toView(clip, site, link)
    const state = ownerState(clip)
    const hasPoster = clip.isShowable && state !== 'hidden'
    // The query stays: the signature of the poster, and the number of its changes.
    const small = view.urls.jpg.replace(/\.jpg(?=$|\?)/, '/w320.webp')
    return {
      ...{ clip, view, state, place: waiting.get(clip.id), views: views.get(clip.id) },
      poster: hasPoster ? (state === 'ready' ? small : view.urls.jpg) : undefined,
    }
  })
}

/** Only owners see their line, so it is read where one of these clips is in it. */
async function findWaiting({ db }: Pick<Deps, 'db'>, clips: readonly Clip[]): Promise<Map<string, number>> {
  const [tokenId] = clips
    .filter(({ state, progress }) => state === 'processing' && progress === 0)
    .map((clip) => clip.tokenId)
  const line = tokenId ? await listWaiting(db, tokenId) : []
  return new Map(line.map((id, index) => [id, index + 1]))
}
