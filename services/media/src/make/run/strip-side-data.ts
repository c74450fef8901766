import { boxesIn, elementsIn, findBox, findElement, findNth, kindOfTrak } from '../probe/boxes.ts'
import { type Change, readHeader, writeChange } from '../probe/edit-header.ts'

/**
 * Hides data beside the picture that ffmpeg copies from the source: HDR's brightness, ICC profiles, views of 3D and
 * spherical films. Players would map tones twice, or show half of a picture. ffmpeg has no option for it.
 */
export async function stripSideData(path: string, file: 'mp4' | 'webm'): Promise<void> {
  const header = await readHeader(path, file)
  if (!header) return
  const changes = [...(file === 'mp4' ? boxesToFree(header.bytes) : elementsToVoid(header.bytes))]
  for (const { at, bytes } of changes) await writeChange(path, { at: header.start + at, bytes })
}

/** Boxes of a sample entry that say how its picture is coded, and its colors (ISO 14496-12, 12.1). */
const CODING = ['avcC', 'colr', 'pasp', 'btrt']

/** Length of a visual sample entry before its boxes (ISO 14496-12, 12.1.3). */
const VISUAL_ENTRY_BYTES = 86

function* boxesToFree(bytes: Buffer): Generator<Change> {
  const moov = findBox(bytes, { start: 0, end: bytes.length }, 'moov')
  const trak =
    moov && findNth(boxesIn(bytes, moov), 0, (box) => box.type === 'trak' && kindOfTrak(bytes, box) === 'vide')
  const stsd = findBox(bytes, trak, 'mdia', 'minf', 'stbl', 'stsd')
  if (!stsd) return
  for (const { type, start } of boxesIn(bytes, { start: stsd.start + 8 + VISUAL_ENTRY_BYTES, end: stsd.end })) {
    const isProfile = type === 'colr' && bytes.toString('latin1', start, start + 4) !== 'nclx'
    if (isProfile || !CODING.includes(type)) yield { at: start - 4, bytes: Buffer.from('free') }
  }
}

/** Element ids of Matroska (RFC 9559, 5.1.4) that lead to the picture. */
const [SEGMENT, TRACKS, ENTRY, VIDEO, COLOUR] = [0x18538067, 0x1654ae6b, 0xae, 0xe0, 0x55b0]
/** StereoMode, Projection; MaxCLL, MaxFALL, MasteringMetadata; BlockAdditionMapping, as of Dolby Vision. */
const [OF_VIDEO, OF_COLOUR, OF_ENTRY] = [[0x53b8, 0x7670], [0x55bc, 0x55bd, 0x55d0], [0x41e4]]

function* elementsToVoid(bytes: Buffer): Generator<Change> {
  const entry = findElement(bytes, { start: 0, end: bytes.length }, SEGMENT, TRACKS, ENTRY)
  const video = findElement(bytes, entry, VIDEO)
  const places = [
    [entry, OF_ENTRY],
    [video, OF_VIDEO],
    [findElement(bytes, video, COLOUR), OF_COLOUR],
  ] as const
  for (const [parent, ids] of places) {
    let at = parent?.start ?? 0
    for (const { id, end } of parent ? elementsIn(bytes, parent) : []) {
      if (ids.includes(id)) yield { at, bytes: voidHead(end - at) }
      at = end
    }
  }
}

/** The head of a Void of so many bytes in all (RFC 8794, 11.3.2). */
function voidHead(total: number): Buffer {
  const size = total - 3
  return size < 126 ? Buffer.of(0xec, 0x80 | (size + 1)) : Buffer.of(0xec, 0x40 | (size >> 8), size & 255)
}
