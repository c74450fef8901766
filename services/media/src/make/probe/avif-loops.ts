import { boxesIn, findBox, findNth, kindOfTrak } from './boxes.ts'

/** Unsigned 32 and 64 bits of ones: the track has no end. */
const ENDLESS = [2 ** 32 - 1, 2 ** 64]

/** A GIF counts to 65,535. */
const MOST_REPETITIONS = 0xffff

/**
 * Reads the repetitions of an AVIF sequence from its `moov`, as libavif does: a track with a repeated edit lasts as
 * long as all repetitions. 0 means for ever, which is also the meaning of no edit list; null plays once.
 */
export function repetitionsOf(header: Buffer): number | null {
  const moov = findBox(header, { start: 0, end: header.length }, 'moov')
  const trak =
    moov && findNth(boxesIn(header, moov), 0, (box) => box.type === 'trak' && kindOfTrak(header, box) === 'pict')
  const [tkhd, elst] = [findBox(header, trak, 'tkhd'), findBox(header, trak, 'edts', 'elst')]
  if (!tkhd || !elst) return 0
  const isRepeated = ((header[elst.start + 3] ?? 0) & 1) === 1
  if (!isRepeated) return null
  const read = (at: number, isLong: boolean) => (isLong ? Number(header.readBigUInt64BE(at)) : header.readUInt32BE(at))
  const [isLongTrack, isLongEdit] = [header[tkhd.start] === 1, header[elst.start] === 1]
  // Behind version, flags, both times, the number and a reserved word; behind version, flags and the number of edits.
  const [lengthAt, editAt] = [tkhd.start + (isLongTrack ? 28 : 20), elst.start + 8]
  if (lengthAt + 8 > header.length || editAt + 8 > header.length) return 0
  const [length, edit] = [read(lengthAt, isLongTrack), read(editAt, isLongEdit)]
  const repetitions = Math.ceil(length / edit) - 1
  if (ENDLESS.includes(length) || !(repetitions <= MOST_REPETITIONS)) return 0
  return repetitions > 0 ? repetitions : null
}
