/** Formats of sources; those beside the first three are accepted by choice (db/source-types.ts). */
export type MediaType = 'gif' | 'mp4' | 'webm' | 'mov' | 'mkv' | '3gp' | 'apng' | 'webp' | 'avif'

/** Formats whose frames are composed on a canvas, without sound. */
const ANIMATIONS = ['gif', 'apng', 'webp'] as const

export const isAnimation = (info: MediaInfo): info is AnimationInfo => isAnimationType(info.type)

export const isAnimationType = (type: MediaType): type is AnimationInfo['type'] =>
  (ANIMATIONS as readonly MediaType[]).includes(type)

/** Facts about a source before it is transcoded. Sizes are as displayed: after pixel aspect ratio and rotation. */
export type MediaInfo = AnimationInfo | VideoInfo

/** Whether its files may be transparent. */
export const mayHaveAlpha = (info: MediaInfo): boolean => (isAnimation(info) ? info.mayBeTransparent : info.alpha)

interface Picture {
  width: number
  height: number
  /** Set where a caller asked for changes: all other members then describe the result. */
  edited?: Edited
  /** Length of the picture; a single picture lasts as long as its sound, and a GIF of one frame 1 s. */
  durationSeconds: number
  frames: number
  fps: number
  /** Set where parts of the file cannot be read and are left out. */
  repaired?: true
}

export interface AnimationInfo extends Picture {
  type: (typeof ANIMATIONS)[number]
  hasAudio: false
  /** Grid of all frame changes, if it is a sensible frame rate; otherwise 2, which is at most 1 cs off. */
  tickCentiseconds: number
  /** 0 loops forever; null plays once. */
  loopCount: number | null
  /** True if the blocks allow transparent pixels; only decoding can confirm them. */
  mayBeTransparent: boolean
  /** True if the file is a GIF that can be served as it is, less its superfluous blocks. */
  rewritable: boolean
  /** Set for a GIF with frames past its screen: the smallest screen around all, on which it is decoded. */
  decoded?: { width: number; height: number }
}

export interface VideoInfo extends Picture {
  type: Exclude<MediaType, AnimationInfo['type']>
  hasAudio: boolean
  codec: string
  /** Index of the ffmpeg stream; a cover picture may come first. */
  videoStream: number
  audioStream: number | null
  /** True for one picture, or a video too short to move, shown for `durationSeconds`. */
  isStill: boolean
  /** Time of the first frame; sound may begin earlier. */
  startSeconds: number
  /** Frame rate of the finest grid that all frame times fit; far above `fps` for irregular ones. */
  baseFps: number
  /** Longest and shortest duration of a frame, the last one included. */
  longestFrameSeconds: number
  shortestFrameSeconds: number
  keyframes: number
  hdr: 'pq' | 'hlg' | null
  alpha: boolean
  /** True if frames may consist of two fields. */
  isInterlaced: boolean
  /** Facts that decide whether a stream may be copied. Absent where an edit changes the pictures. */
  stored?: StoredStreams
  /**
   * Repetitions of a sequence of images: 0 means for ever, null plays once. Absent for films, whose GIFs repeat for
   * ever.
   */
  loopCount?: number | null
  /** Colour matrix: `rgb` for files without YUV, `unknown` if the file does not name it. */
  colorSpace: 'rgb' | 'bt709' | 'unknown' | 'other'
}

/** Streams as the file stores them. */
export interface StoredStreams {
  /** ffprobe's name: `High`, `Constrained Baseline`, `Profile 0`. */
  profile: string
  /** 42 means 4.2; negative if unknown. */
  level: number
  pixelFormat: string
  /** Pixels are square and not turned, and the stream has no side data such as a view around the camera. */
  isPlain: boolean
  /** The first picture is a keyframe, and none is hidden by an edit list. */
  isWhole: boolean
  /** Time from one keyframe to the next, or to the end. */
  longestKeyframeGapSeconds: number
  /** Mean bits per second of the picture. */
  bitRate: number
  soundTracks: number
  /** The sound that is used. */
  sound: StoredSound | null
}

export interface StoredSound {
  codec: string
  profile: string
  channels: number
  sampleRate: number
  bitRate: number
}

/** An edit as the source allows it, without members that change nothing. Seconds are those of the picture. */
export interface ResolvedEdit {
  start?: number
  duration?: number
  crop?: Crop
  speed?: number
  mute?: true
  /** Seconds into the result. */
  posterAt?: number
  caption?: Caption
}

export interface Caption {
  text: string
  position: 'top' | 'bottom'
}

/** Lines of a caption, and the size of its letters in pixels of the mp4. */
export interface CaptionLayout {
  lines: string[]
  fontSize: number
}

/** Pixels of the upright picture. */
export interface Crop {
  x: number
  y: number
  width: number
  height: number
}

export interface Edited {
  edit: ResolvedEdit
  /** The source as it is; its duration as declared, where the probe read only a part, or null. */
  source: { width: number; height: number; durationSeconds: number | null }
  cut: Cut
  /** Set for an edit with a caption. */
  caption?: CaptionLayout
}

/** Frames of the source that the result consists of. Times are the file's, in seconds from its beginning. */
export interface Cut {
  /** Keyframe from which a long source is decoded; null: from its beginning. */
  seekSeconds: number | null
  /** Time of the first frame. */
  startSeconds: number
  /** Times between the part and its neighbours; null where it has none. */
  afterSeconds: number | null
  beforeSeconds: number | null
  /** Frames that are decoded and dropped. */
  skippedFrames: number
}
