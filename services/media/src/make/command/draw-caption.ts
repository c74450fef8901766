import { rm, symlink, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { LINE_HEIGHT, MARGIN } from '../../core/captions/caption.ts'
import { captionFontPath } from '../../core/captions/caption-font.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'

const FONT_FILE = 'caption.ttf'
const lineFile = (line: number) => `caption-${line}.txt`

/** The font's letters above and below their line, in ems. */
const ASCENT = 0.93
const DESCENT = 0.24
const OUTLINE = 1 / 12

/**
 * Puts font and lines into the directory of the clip: the text of a stranger is never part of a command. Throws if this
 * ffmpeg cannot draw, for another worker.
 */
export async function writeCaption(
  { tools, workDirectory: directory }: { tools: MediaTools; workDirectory: string },
  { caption }: RenditionPlan,
): Promise<void> {
  if (!caption) return
  if (!tools.ffmpeg.canDrawText) throw new Error('this ffmpeg has no filter drawtext, which captions need')
  const font = resolve(directory, FONT_FILE)
  await rm(font, { force: true })
  await symlink(captionFontPath(), font)
  for (const [at, line] of caption.lines.entries()) await writeFile(resolve(directory, lineFile(at)), line)
}

/**
 * Draws the lines, each by a filter of its own, because older versions cannot center them. `expansion=none` takes every
 * character as it is. `max_glyph_a` is the height of a line's highest letter, above which `y` is: so all stand on their
 * lines.
 */
export function captionFilters({ caption, video }: RenditionPlan): string[] {
  if (!caption) return []
  const { lines, fontSize, position } = caption
  const outline = Math.max(1, Math.round(fontSize * OUTLINE))
  const look = `fontsize=${fontSize}:fontcolor=white:borderw=${outline}:bordercolor=black`
  const first =
    position === 'top'
      ? (MARGIN + ASCENT) * fontSize
      : video.height - (MARGIN + DESCENT + (lines.length - 1) * LINE_HEIGHT) * fontSize
  return lines.map((_, at) => {
    const y = Math.round(first + at * LINE_HEIGHT * fontSize)
    const files = `fontfile=${FONT_FILE}:textfile=${lineFile(at)}:expansion=none`
    return `drawtext=${files}:${look}:x=(w-text_w)/2:y=${y}-max_glyph_a`
  })
}
