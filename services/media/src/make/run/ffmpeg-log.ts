import { refusedDecoder } from '../../ffmpeg/hardening.ts'

/** Enough for the reason of a failure; a hostile file can make ffmpeg write megabytes. */
const REASONS_CHARACTERS = 16_384

/** Each message of `level+…` has its level behind the component that it comes from. */
const MESSAGE = /^(?:\[[^\]@]+@ 0x[0-9a-f]+\] )*\[([a-z]+)\] (.*)$/s

/** Lines about the first decoded frame, and about each that differs from it, which `-reinit_filter:v 0` lets pass. */
const FRAME =
  /^\[graph -?\d+ input from stream [^@]+ @ 0x[0-9a-f]+\] \[\w+\] (?:w:(\d+) h:(\d+) pixfmt:(\w+) |Changing (?:video )?frame )/

/**
 * Reads what we need of the log of one run, line by line. The log also has titles and descriptions of the file, in
 * which its author may imitate ffmpeg. They appear only before `Stream mapping`, and not at the level of errors. A line
 * break in the name of a Matroska tag can still forge a complaint or a change. That clip is then encoded instead of
 * copied.
 */
export class FfmpegLog {
  /** The first error, also of a decoder that goes on. */
  complaint: string | undefined
  /** The end of the errors, for people and for the causes of a failure. */
  reasons = ''
  /** Frames of the first output, by the progress of the run. */
  writtenFrames: number | undefined
  /** Size and pixels of the decoded frames, such as `320x240 yuv420p`, and `another`; in a log of level `verbose`. */
  readonly pictures = new Set<string>()
  /** Decibels of the loudest sample. A sound that changes its format is measured in parts. */
  #peak = Number.NEGATIVE_INFINITY
  readonly #decoded = new Map<number, number>()

  /** Takes the next line. */
  readonly add = (line: string): void => {
    const [, level, text = line] = MESSAGE.exec(line) ?? []
    if (level === undefined || /^(error|fatal|panic)$/.test(level)) {
      // Such a stream is in none of our files; a picture of that kind ends the run.
      if (level && text.search(refusedDecoder) !== 0) this.complaint ??= line
      this.reasons = `${this.reasons}${line}\n`.slice(-REASONS_CHARACTERS)
      return
    }
    const [frame, width, height, pixels] = FRAME.exec(line) ?? []
    if (frame) this.pictures.add(pixels ? `${width}x${height} ${pixels}` : 'another')
    if (text === 'Stream mapping:') this.reasons = ''
    const peak = /^max_volume: (-?[\d.]+) dB/.exec(text)?.[1]
    if (peak && line.startsWith('[Parsed_volumedetect')) this.#peak = Math.max(this.#peak, Number(peak))
    const [, stream, frames] = /#0:(\d+) \(video\):.*; (\d+) frames decoded/.exec(text) ?? []
    if (stream) this.#decoded.set(Number(stream), Number(frames))
  }

  /** Silence and undecodable sound count as none, so that chat programs treat the clip like a GIF. */
  get isAudible(): boolean {
    return this.#peak > -70
  }

  /** The number of decoded frames of a video stream, in a log of level `verbose`. */
  framesOf(stream: number): number | undefined {
    return this.#decoded.get(stream)
  }
}
