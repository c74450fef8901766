import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The font of all captions: Latin, Greek, Cyrillic, Armenian and Georgian letters, and many symbols. It has not changed
 * since 2016, so equal edits stay equal pictures.
 */
export const captionFontPath = (): string =>
  fileURLToPath(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSansCondensed-Bold.ttf'))

export interface CaptionFont {
  /** Widths of the characters that the font has, in ems, by code point. */
  widths: ReadonlyMap<number, number>
}

let font: CaptionFont | undefined

/** Reads the font with the first caption. */
export function captionFont(): CaptionFont {
  font ??= { widths: readWidths(readFileSync(captionFontPath())) }
  return font
}

/** Reads `head`, `hhea`, `hmtx` and a character map of format 12 (ISO/IEC 14496-22, OpenType). */
function readWidths(file: Buffer): Map<number, number> {
  const tables = new Map<string, number>()
  for (let at = 12; at < 12 + 16 * file.readUInt16BE(4); at += 16) {
    tables.set(file.toString('latin1', at, at + 4), file.readUInt32BE(at + 8))
  }
  const table = (name: string) => tables.get(name) ?? 0
  const unitsPerEm = file.readUInt16BE(table('head') + 18)
  const lastWidth = file.readUInt16BE(table('hhea') + 34) - 1
  const widthOf = (glyph: number) => file.readUInt16BE(table('hmtx') + 4 * Math.min(glyph, lastWidth)) / unitsPerEm
  const widths = new Map<number, number>()
  const map = findCharacterMap(file, table('cmap'))
  for (let group = 0; group < file.readUInt32BE(map + 12); group++) {
    const at = map + 16 + 12 * group
    const [first, last, glyph] = [file.readUInt32BE(at), file.readUInt32BE(at + 4), file.readUInt32BE(at + 8)]
    for (let code = first; code <= last; code++) widths.set(code, widthOf(glyph + code - first))
  }
  return widths
}

function findCharacterMap(file: Buffer, cmap: number): number {
  for (let entry = 0; entry < file.readUInt16BE(cmap + 2); entry++) {
    const map = cmap + file.readUInt32BE(cmap + 8 + 8 * entry)
    if (file.readUInt16BE(map) === 12) return map
  }
  throw new Error('the font of the captions has no character map of format 12')
}
