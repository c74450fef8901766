/** The clips that this process is transcoding, and a signal to yield to the next one. */
export interface AtWork {
  clips(): number
  untilNextClip(): AbortSignal
  /** Counts a clip; the returned function ends it. */
  beginClip(): () => void
}

export function createAtWork(): AtWork {
  let clips = 0
  let next = new AbortController()
  return {
    clips: () => clips,
    untilNextClip: () => next.signal,
    beginClip: () => {
      clips++
      next.abort(new Error('a transcode begins'))
      next = new AbortController()
      return () => void clips--
    },
  }
}
