// Reads the declared duration from the first bytes of a file, so that an import can end before the rest is fetched. An
// unknown duration is no refusal, because the probe measures the whole file (probe.ts).
import type { MediaType } from '../../db/media-info.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'
import { boxesIn, elementsIn, findBox, findElement, kindOfTrak, readNumber } from './boxes.ts'

/** Declared seconds of an mp4's picture or a whole webm; undefined if absent or unreadable, and for gifs. */
export function readDeclaredDuration(type: MediaType, head: Buffer): number | undefined {
  if (type === 'gif') return undefined
  const seconds = demuxerOf[type] === 'mov' ? durationOfMp4(head) : durationOfWebm(head)
  return seconds !== undefined && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}

/** The duration of the video track after its edit list; sound may be longer. */
function durationOfMp4(bytes: Buffer): number | undefined {
  const moov = findBox(bytes, { start: 0, end: Number.MAX_SAFE_INTEGER }, 'moov')
  const mvhd = findBox(bytes, moov, 'mvhd')
  if (!moov || !mvhd) return undefined
  for (const trak of boxesIn(bytes, moov)) {
    const isVideo = trak.type === 'trak' && kindOfTrak(bytes, trak) === 'vide'
    const tkhd = isVideo ? findBox(bytes, trak, 'tkhd') : undefined
    if (!tkhd) continue
    const isLong = bytes[tkhd.start] === 1
    const scale = readNumber(bytes, mvhd.start + (bytes[mvhd.start] === 1 ? 20 : 12), 4)
    const length = readNumber(bytes, tkhd.start + (isLong ? 28 : 20), isLong ? 8 : 4)
    // All ones mean "unknown" (8.3.2.3).
    const isKnown = length !== (isLong ? 2 ** 64 : 2 ** 32 - 1)
    return scale && length && isKnown ? length / scale : undefined
  }
  return undefined
}

/** Element ids of Matroska (RFC 9559 5.1) that lead to the duration. */
const [SEGMENT, INFO, SCALE, DURATION] = [0x18538067, 0x1549a966, 0x2ad7b1, 0x4489]

function durationOfWebm(bytes: Buffer): number | undefined {
  let scale = 1_000_000
  let ticks: number | undefined
  const info = findElement(bytes, { start: 0, end: bytes.length }, SEGMENT, INFO)
  for (const { id, start, end } of info ? elementsIn(bytes, info) : []) {
    if (id === SCALE) scale = readNumber(bytes, start, end - start) || scale
    if (id === DURATION && end <= bytes.length) {
      ticks = end - start === 4 ? bytes.readFloatBE(start) : end - start === 8 ? bytes.readDoubleBE(start) : ticks
    }
  }
  return ticks === undefined ? undefined : (ticks * scale) / 1e9
}
