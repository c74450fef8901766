// Changes to a clip that its caller requests at upload or import: part, crop, speed, no sound, poster, caption. Equal
// edits have one canonical form, by which clips share a source. Tests: edit.test.ts, test/edits.test.ts.
import { createHash } from 'node:crypto'
import type { Caption, Crop, ResolvedEdit } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import { CAPTION_POSITIONS, cleanCaption } from '../captions/caption.ts'
import { invalidField, readFlag } from '../clips/clip-fields.ts'
import type { Size } from '../clips/geometry.ts'

/**
 * Requested changes; an absent member changes nothing. Seconds are those of the source's picture, from its first frame.
 */
export interface Edit {
  start?: number
  duration?: number
  crop?: Crop | Ratio
  speed?: number
  mute?: true
  /** Seconds into the result. */
  posterAt?: number
  caption?: Caption
  /** Set where only the part was fetched: the seconds that the file lacks at its beginning. */
  missingSeconds?: number
}

/** The largest part from the middle with these proportions. */
interface Ratio {
  ratio: Size
}

/** Names of the fields, as callers send them. */
export const EDIT_FIELDS = [
  'start',
  'duration',
  'end',
  'crop',
  'speed',
  'mute',
  'poster_at',
  'caption',
  'caption_position',
] as const

export type RawEdit = Partial<Record<(typeof EDIT_FIELDS)[number], string | number | boolean>>

const SPEED = { least: 0.25, most: 4 }
/** A day; the source's own length is the real limit. */
const MAX_SECONDS = 86_400
const MAX_PIXELS = 100_000

/** Sides below it are of no use, and encoders refuse the smallest. */
export const LEAST_SIDE = 16
/** A shorter part would be a still. */
export const LEAST_SECONDS = 0.1

/** Undefined if nothing is to be changed. Throws invalid_field. */
export function cleanEdit(raw: RawEdit): Edit | undefined {
  const given = (name: keyof RawEdit) => raw[name] !== undefined && String(raw[name]).trim() !== ''
  const start = given('start') ? readTime('start', raw.start) : undefined
  if (given('end') && given('duration')) throw invalidField('end', 'cannot be given together with duration')
  const end = given('end') ? readTime('end', raw.end) : undefined
  if (end !== undefined && end <= (start ?? 0)) throw invalidField('end', 'must be after start')
  const duration = given('duration') ? readTime('duration', raw.duration) : undefined
  if (duration === 0) throw invalidField('duration', 'must be more than 0')
  const length = end === undefined ? duration : toMilliseconds(end - (start ?? 0))
  const position = given('caption_position') ? readPosition(String(raw.caption_position).trim()) : 'bottom'
  const caption = given('caption') ? cleanCaption(String(raw.caption)) : ''
  const edit: Edit = {
    ...(start !== undefined && { start }),
    ...(length !== undefined && { duration: length }),
    ...(given('crop') && { crop: readCrop(String(raw.crop)) }),
    ...(given('speed') && { speed: readSpeed(String(raw.speed)) }),
    ...(readFlag('mute', String(raw.mute ?? '')) && { mute: true as const }),
    ...(given('poster_at') && { posterAt: readTime('poster_at', raw.poster_at) }),
    ...(caption && { caption: { text: caption, position } }),
  }
  return Object.keys(edit).length > 0 ? edit : undefined
}

/** True if the edit chooses a part, so that the source may be longer than a clip. */
export const choosesPart = (edit: Edit | undefined): boolean =>
  edit?.start !== undefined || edit?.duration !== undefined

/** Second of the file at which the part starts. */
export const startInFile = ({ start = 0, missingSeconds = 0 }: Edit): number => Math.max(0, start - missingSeconds)

/** Longest source in seconds of a clip with this edit. */
export function longestSource(
  { maxSeconds, maxSourceSeconds }: { maxSeconds: number; maxSourceSeconds: number },
  edit: Edit | undefined,
): number {
  return choosesPart(edit) ? Math.max(maxSeconds, maxSourceSeconds) : maxSeconds * Math.max(1, edit?.speed ?? 1)
}

/** Seconds of the source between which an edit needs frames; undefined: all. */
export function neededSpan(edit: Edit | undefined, maxSeconds: number): { from: number; to: number } | undefined {
  if (!edit || !choosesPart(edit)) return undefined
  const { start = 0, duration = Number.POSITIVE_INFINITY, speed = 1 } = edit
  // One second more, so that a part that is too long is noticed.
  return { from: start, to: start + Math.min(duration, maxSeconds * speed + 1) }
}

/** The fields of an edit as an API shows them. */
export function describeEdit({ posterAt, crop, caption, ...edit }: ResolvedEdit) {
  return {
    ...edit,
    ...(crop && { crop: [crop.x, crop.y, crop.width, crop.height].join(',') }),
    ...(posterAt !== undefined && { poster_at: posterAt }),
    ...(caption && { caption: caption.text, caption_position: caption.position }),
  }
}

/** Key of the bytes and their edit, in hex: the hash of the file itself without an edit. */
export function sourceKey(sha256: string, edit: ResolvedEdit | undefined): string {
  if (!edit || Object.keys(edit).length === 0) return sha256
  return createHash('sha256')
    .update(JSON.stringify([sha256, canonical(edit)]))
    .digest('hex')
}

const canonical = (edit: ResolvedEdit) => Object.entries(describeEdit(edit)).sort(([a], [b]) => (a < b ? -1 : 1))

/** Sides become even, as those of videos are; throws edit_out_of_range for a crop that is not inside the picture. */
export function resolveCrop(crop: NonNullable<Edit['crop']>, picture: Size): Crop {
  const resolved = 'ratio' in crop ? middleOf(picture, crop.ratio) : crop
  const { x, y, width, height } = resolved
  if (Math.min(width, height) < LEAST_SIDE) throw outOfRange('crop', { least: LEAST_SIDE })
  if (x + width > picture.width || y + height > picture.height) {
    throw outOfRange('crop', { picture: `${picture.width}x${picture.height}` })
  }
  return evenSides(resolved, picture)
}

export const outOfRange = (param: string, details: Record<string, unknown> = {}) =>
  apiError('edit_out_of_range', { details: { param, ...details } })

/** A crop that changes nothing stays what it is. */
function evenSides(crop: Crop, picture: Size): Crop {
  const { width, height } = crop
  if (width === picture.width && height === picture.height) return crop
  return { ...crop, width: width - (width % 2), height: height - (height % 2) }
}

function middleOf(picture: Size, ratio: Size): Crop {
  const scale = Math.min(picture.width / ratio.width, picture.height / ratio.height)
  const [width, height] = [Math.round(ratio.width * scale), Math.round(ratio.height * scale)]
  return { x: (picture.width - width) >> 1, y: (picture.height - height) >> 1, width, height }
}

const toMilliseconds = (seconds: number) => Math.round(seconds * 1000) / 1000

/** `12.5`, or `1:02.250`. */
function readTime(param: string, value: unknown): number {
  const text = typeof value === 'number' ? String(toMilliseconds(value)) : String(value).trim()
  const [, minutes = '0', seconds] = /^(?:(\d{1,4}):(?=[0-5]\d(?:\.|$)))?(\d{1,5}(?:\.\d{1,20})?)$/.exec(text) ?? []
  const time = Number(minutes) * 60 + Number(seconds)
  if (seconds === undefined || time > MAX_SECONDS) {
    throw invalidField(param, 'must be seconds, as in 12.5, or minutes and seconds, as in 1:02.5')
  }
  return toMilliseconds(time)
}

function readPosition(text: string): Caption['position'] {
  const position = CAPTION_POSITIONS.find((known) => known === text.toLowerCase())
  if (!position) throw invalidField('caption_position', `must be ${CAPTION_POSITIONS.join(' or ')}`)
  return position
}

function readSpeed(text: string): number {
  const speed = /^\d(\.\d{1,20})?$/.test(text.trim()) ? Math.round(Number(text) * 100) / 100 : 0
  if (speed >= SPEED.least && speed <= SPEED.most) return speed
  throw invalidField('speed', `must be a number from ${SPEED.least} to ${SPEED.most}`)
}

function readCrop(text: string): Crop | Ratio {
  const numbers = text.split(/[,:]/, 5).map((part) => (/^\s*\d{1,6}\s*$/.test(part) ? Number(part) : Number.NaN))
  const isUsable = numbers.every((number) => number <= MAX_PIXELS)
  const [x = 0, y = 0, width = 0, height = 0] = numbers
  if (isUsable && /^[^,]+:[^,]+$/.test(text) && numbers.length === 2 && x > 0 && y > 0) {
    return { ratio: { width: x, height: y } }
  }
  if (isUsable && !text.includes(':') && numbers.length === 4 && width > 0 && height > 0) return { x, y, width, height }
  throw invalidField('crop', 'must be x,y,width,height in pixels, or proportions such as 16:9')
}
