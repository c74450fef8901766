import type { Config } from '../../config.ts'
import type { ExtraKind, MainKind } from '../../db/tables.ts'
import { ERRORS_PATH, errorCatalogue } from '../../errors.ts'
import type { ClipView } from './clip-view.ts'
import type { Clip } from './clips.store.ts'
import { embedSnippet } from './embed-snippet.ts'
import { fitVideo } from './geometry.ts'

type Site = Config['site']

/** The specification's Result object: these members and no others. */
export interface Result {
  page: string
  files: Record<MainKind, string>
  oembed: string
  embed: string
  meta: { duration: string; frames: string; height: string; width: string }
}

export function toResult(clip: Clip, site: Site): Result {
  const view = toView(clip, site)
  const { page, gif, jpg, mp4, webm, oembed } = view.urls
  return {
    page,
    files: { gif, jpg, mp4, webm },
    oembed,
    embed: embedSnippet(view),
    meta: {
      duration: `${Math.round(clip.info.durationSeconds * 1000) / 1000}s`,
      frames: String(clip.info.frames),
      height: String(clip.info.height),
      width: String(clip.info.width),
    },
  }
}

/** All URLs follow from the id, so they are known before the files exist. */
export function toView(clip: Clip, { name, baseUrl, filesBaseUrl, filesRedirectUrl }: Site): ClipView {
  const file = (ending: string) => `${filesBaseUrl}/f/${clip.id}.${ending}`
  const has = (extra: ExtraKind) => clip.state === 'ready' && clip.extras.includes(extra)
  return {
    id: clip.id,
    state: clip.state,
    title: clip.title ?? undefined,
    tags: clip.tags,
    nsfw: clip.nsfw,
    attribution: clip.attribution ?? undefined,
    ...fitVideo(clip.info),
    failure: clip.errorCode
      ? {
          code: clip.errorCode,
          message: errorCatalogue[clip.errorCode].message,
          reference: `${baseUrl}${ERRORS_PATH}#${clip.errorCode}`,
        }
      : undefined,
    durationSeconds: clip.info.durationSeconds,
    hasAudio: clip.hasAudio,
    placeholder: clip.placeholder ?? undefined,
    createdAt: clip.createdAt,
    urls: {
      page: `${baseUrl}/gif/${clip.id}`,
      embed: `${baseUrl}/embed/${clip.id}`,
      oembed: `${baseUrl}/oembed/${clip.id}`,
      gif: file('gif'),
      jpg: file('jpg'),
      mp4: file('mp4'),
      webm: file('webm'),
      av1: has('av1') ? file('av1.mp4') : undefined,
      webp: has('webp') ? file('webp') : undefined,
    },
    filesRedirectUrl,
    siteName: name,
    siteUrl: `${baseUrl}/`,
    oembedEndpoint: `${baseUrl}/oembed`,
  }
}
