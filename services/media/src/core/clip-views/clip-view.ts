// Clips as callers see them: on pages, as the specification's result, as an embed snippet.
import type { Config } from '../../config.ts'
import type { ExtraKind, RenditionKind } from '../../db/tables.ts'
import { ERRORS_PATH, errorCatalogue } from '../../errors.ts'
import { endOfView } from '../clip-access/require-visible.ts'
import type { Link, LinkTarget } from '../clip-access/share-links.ts'
import type { Clip } from '../clips/clips.store.ts'
import { creditOf } from '../clips/credit.ts'
import { fitVideo } from '../clips/geometry.ts'

/** A clip as pages show it: plain values, all URLs absolute, nothing that needs a look-up. */
export type ClipView = ReturnType<typeof toView>

/**
 * All URLs follow from the id, so they are known before the files exist. Those of a private clip are signed by its
 * link, as far as it leads.
 */
export function toView(
  clip: Clip,
  { name, baseUrl, filesBaseUrl, filesRedirectUrl, takesReports }: Config['site'],
  link?: Link,
) {
  const { id, state, isShowable, tags, nsfw, hasAudio, createdAt, errorCode: code } = clip
  const query = (target: LinkTarget) => link?.queryOf(target) ?? ''
  const opensPage = link === undefined || link.queryOf('page') !== undefined
  const file = (kind: RenditionKind, ending: string = kind) => `${filesBaseUrl}/f/${id}.${ending}${query(kind)}`
  // Another poster has another address, so that caches keep each for ever.
  const jpg = clip.posterNumber === 0 ? file('jpg') : withNumber(file('jpg'), clip.posterNumber)
  const has = (extra: ExtraKind) => state === 'ready' && clip.extras.includes(extra)
  const failure: Record<'code' | 'message' | 'reference', string> | undefined = code
    ? { code, message: errorCatalogue[code].message, reference: `${baseUrl}${ERRORS_PATH}#${code}` }
    : undefined
  return {
    ...{ id, state, isShowable, tags, nsfw, hasAudio, createdAt, failure },
    /** Search engines may list it, and pages announce its oEmbed. */
    isListed: clip.visibility === 'public',
    title: clip.title ?? undefined,
    attribution: clip.attribution ?? undefined,
    /** Pixels of the poster and the videos; the result's `meta` has those of the source, which may be larger. */
    ...fitVideo(clip.info),
    durationSeconds: clip.info.durationSeconds,
    /** Thumbhash of the poster, shown until the poster has loaded. */
    placeholder: clip.placeholder ?? undefined,
    urls: {
      page: `${baseUrl}/gif/${id}${query('page')}`,
      embed: `${baseUrl}/embed/${id}${query('embed')}`,
      oembed: `${baseUrl}/oembed/${id}${query('oembed')}`,
      /** Form of visitors who report the clip. */
      report: takesReports && opensPage ? `${baseUrl}/gif/${id}/report${query('page')}` : undefined,
      gif: file('gif'),
      jpg,
      mp4: file('mp4'),
      webm: file('webm'),
      av1: has('av1') ? file('av1', 'av1.mp4') : undefined,
      webp: has('webp') && clip.posterAt === null ? file('webp') : undefined,
    },
    /** The clip is private: its pages are for their viewer alone. */
    isLinked: link !== undefined,
    /** False for a link that shows the player alone. */
    opensPage,
    endsAt: endOfView(clip, link),
    /** Target to which requests for files are redirected. */
    filesRedirectUrl,
    siteName: name,
    /** Home page, with a slash at its end; `provider_url` in oEmbed. */
    siteUrl: `${baseUrl}/`,
    /** Endpoint that takes `?url=`. */
    oembedEndpoint: `${baseUrl}/oembed`,
  }
}

const withNumber = (url: string, number: number) => `${url}${url.includes('?') ? '&' : '?'}p=${number}`

/** Returns the title, or a name made of the id: a page, a card and an iframe need one. */
export function titleOf({ title, id }: ClipView): string {
  return title || `Clip ${id}`
}

/** Description for cards and search results: length, size, sound, author. */
export function describe(clip: ClipView): string {
  const sound = clip.hasAudio ? ', with sound' : ''
  const credit = clip.attribution ? ` From ${creditOf(clip.attribution).label}.` : ''
  return `A ${formatSeconds(clip)} clip, ${clip.width} × ${clip.height}${sound}.${credit}`
}

export function formatSeconds({ durationSeconds }: ClipView): string {
  return `${Math.round(durationSeconds * 10) / 10} s`
}
