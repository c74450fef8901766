/** Clips this process is making, whichever service of it, and what gives way to the next one. */
let clips = 0
let next = new AbortController()

export const clipsAtWork = (): number => clips

/** Aborted when this process begins the next clip. */
export const untilNextClip = (): AbortSignal => next.signal

/** Returns what ends it. */
export function beginClip(): () => void {
  clips++
  next.abort(new Error('a clip is to be made'))
  next = new AbortController()
  return () => void clips--
}
