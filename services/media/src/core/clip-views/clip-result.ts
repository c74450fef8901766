import type { Config } from '../../config.ts'
import type { Link } from '../clip-access/share-links.ts'
import type { Clip } from '../clips/clips.store.ts'
import { toView } from './clip-view.ts'
import { embedSnippet } from './embed-snippet.ts'

export type Result = ReturnType<typeof toResult>

/** The specification's Result object: these members and no others. */
export function toResult(clip: Clip, site: Config['site'], link?: Link) {
  const view = toView(clip, site, link)
  const { page, gif, jpg, mp4, webm, oembed } = view.urls
  const { durationSeconds, frames, height, width } = clip.info
  return {
    page,
    files: { gif, jpg, mp4, webm },
    oembed,
    embed: embedSnippet(view),
    meta: {
      duration: `${Math.round(durationSeconds * 1000) / 1000}s`,
      frames: String(frames),
      height: String(height),
      width: String(width),
    },
  }
}
