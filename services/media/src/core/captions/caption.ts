// Captions: the text that a caller wants in the picture, and where its lines go. A caption is drawn as it was sent,
// letter by letter, or refused. Tests: caption.test.ts, test/captions.test.ts.
import type { CaptionLayout } from '../../db/media-info.ts'
import { invalidField } from '../clips/clip-fields.ts'
import { fitVideo, type Size } from '../clips/geometry.ts'
import { captionFont } from './caption-font.ts'

export const CAPTION_POSITIONS = ['top', 'bottom'] as const

const MAX_CHARACTERS = 120
const MAX_LINES = 3

/** Scripts whose letters stand side by side from left to right; ffmpeg before 6.1 joins and reorders none. */
const DRAWN_SCRIPTS = /^[\p{scx=Latin}\p{scx=Greek}\p{scx=Cyrillic}\p{scx=Armenian}\p{scx=Georgian}\p{scx=Common}]$/u

/** Returns the text as it is drawn, in NFC and with single blanks. Throws invalid_field. */
export function cleanCaption(raw: string): string {
  const given = raw.trim()
  // Bounds the work below.
  if (given.length > 10 * MAX_CHARACTERS) throw tooLong()
  if (/\p{Cc}/u.test(given)) throw invalidField('caption', 'must not hold control characters or line breaks')
  // The font has only the text style of symbols.
  const text = given
    .normalize('NFC')
    .replaceAll(/\p{Variation_Selector}/gu, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
  const characters = [...text]
  if (characters.length > MAX_CHARACTERS) throw tooLong()
  const foreign = characters.find((character) => !isDrawn(character))
  if (foreign === undefined) return text
  const code = foreign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  throw invalidField('caption', `has a character that captions cannot show: ${foreign.toWellFormed()} (U+${code})`)
}

const tooLong = () => invalidField('caption', `must be at most ${MAX_CHARACTERS} characters`)

const isDrawn = (character: string): boolean =>
  DRAWN_SCRIPTS.test(character) &&
  !/[\p{M}\p{Cf}]/u.test(character) &&
  captionFont().widths.has(character.codePointAt(0) ?? 0)

/** Part of the shorter side that the largest letters take. */
const LARGEST = 1 / 12
/** Part of the longer side that the smallest letters take, so that they are 10 pixels high in the GIF of 480. */
const SMALLEST = 1 / 48
/** Smaller letters cannot be read. */
const LEAST_PIXELS = 10
const SHRINK = 0.95

/** Distances in ems. */
export const LINE_HEIGHT = 1.2
export const MARGIN = 0.5

/**
 * Chooses the largest letters with which the text takes three lines at most, and breaks no word if that is possible.
 * Undefined if it does not fit. `picture` is the source's, after the crop.
 */
export function layOutCaption(text: string, picture: Size): CaptionLayout | undefined {
  const { width, height } = fitVideo(picture)
  const smallest = Math.max(LEAST_PIXELS, Math.ceil(Math.max(width, height) * SMALLEST))
  const largest = Math.max(smallest, Math.round(Math.min(width, height) * LARGEST))
  for (const breaksWords of [false, true]) {
    for (let fontSize = largest; fontSize >= smallest; fontSize = nextSize(fontSize, smallest)) {
      const lines = wrap(text, fontSize, width - 2 * MARGIN * fontSize)
      const isWhole = breaksWords || lines.join(' ') === text
      const tall = (lines.length * LINE_HEIGHT + 2 * MARGIN) * fontSize
      if (isWhole && lines.length <= MAX_LINES && tall <= height) return { lines, fontSize }
    }
  }
  return undefined
}

/** The next smaller size; one below the smallest ends. */
const nextSize = (size: number, smallest: number) =>
  size === smallest ? 0 : Math.max(smallest, Math.floor(size * SHRINK))

/** Lines of about the same width, as many as `room` needs. */
function wrap(text: string, fontSize: number, room: number): string[] {
  let lines = fill(text, fontSize, room)
  const longestWord = Math.max(...text.split(' ').map((word) => widthOf(word, fontSize)))
  for (let narrower = room; narrower >= longestWord; narrower -= fontSize / 2) {
    const next = fill(text, fontSize, narrower)
    if (next.length > lines.length) break
    lines = next
  }
  return lines
}

/** Lines as full as possible; a word wider than a line is broken. */
function fill(text: string, fontSize: number, room: number): string[] {
  const lines: string[] = []
  let line = ''
  const add = (part: string, separator: string) => {
    const longer = line ? line + separator + part : part
    if (!line || widthOf(longer, fontSize) <= room) line = longer
    else {
      lines.push(line)
      line = part
    }
  }
  for (const word of text.split(' ')) {
    if (widthOf(word, fontSize) <= room) add(word, ' ')
    else for (const [at, character] of [...word].entries()) add(character, at === 0 ? ' ' : '')
  }
  return [...lines, line]
}

/** Pixels, rounded up for each character, because FreeType rounds each one. */
const widthOf = (text: string, fontSize: number): number =>
  [...text].reduce(
    (sum, next) => sum + Math.ceil((captionFont().widths.get(next.codePointAt(0) ?? 0) ?? 1) * fontSize),
    0,
  )
