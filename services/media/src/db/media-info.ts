/** Of what we take. */
export type MediaType = 'gif' | 'mp4' | 'webm'

/**
 * What is known about a source before it is transcoded. Plain data, so that it can travel in a job.
 * Sizes are as displayed: after pixel aspect ratio and rotation.
 */
export type MediaInfo = GifInfo | VideoInfo

interface Picture {
  width: number
  height: number
  /** Length of the picture; a single picture lasts as long as its sound. 1 for a GIF of one frame, which has no duration of its own. */
  durationSeconds: number
  frames: number
  /** Frames divided by duration. */
  fps: number
}

export interface GifInfo extends Picture {
  type: 'gif'
  hasAudio: false
  /** The grid on which every frame change falls, if it is a sensible frame rate; else 2, which is 1 cs off at most. */
  tickCentiseconds: number
  /** 0 is for ever; null plays once. */
  loopCount: number | null
  /** The blocks allow for pixels that show what is behind; only decoding finds out. Absent in old rows. */
  mayBeTransparent?: boolean
  /** The file can be handed on as it is, without the blocks nobody needs. */
  rewritable: boolean
}

export interface VideoInfo extends Picture {
  type: Exclude<MediaType, 'gif'>
  hasAudio: boolean
  codec: string
  /** Indexes of ffmpeg's streams; a cover picture may come first. */
  videoStream: number
  audioStream: number | null
  /** One picture, or too short to move in the outputs: the first frame stays for `durationSeconds`. Absent in old rows. */
  isStill?: boolean
  /** The first frame's time after the start of the file, where sound may begin earlier. */
  startSeconds: number
  /** The finest grid the frame times need; far above `fps` when they are irregular. */
  baseFps: number
  /** How long one frame stays at most and at least, the last one too. */
  longestFrameSeconds: number
  shortestFrameSeconds: number
  keyframes: number
  hdr: 'pq' | 'hlg' | null
  alpha: boolean
  /** Frames may be made of two fields. Absent in old rows. */
  isInterlaced?: boolean
  /** Matrix of the colours: `rgb` for files that hold no YUV, `unknown` when the file does not say. */
  colorSpace: 'rgb' | 'bt709' | 'unknown' | 'other'
}
