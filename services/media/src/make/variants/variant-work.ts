import type { MediaInfo } from '../../db/media-info.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { Rendition } from '../run/verify-renditions.ts'

export interface VariantWork {
  tools: MediaTools
  /** Holds the clip's files that the variant is made of, under their names in `workFiles`. */
  workDirectory: string
  info: MediaInfo
  signal: AbortSignal
}

/** A file, or the fewest bytes that were reached if none is small enough. */
export type VariantMade = { file: Rendition } | { smallest: number }
