// Variants: other sizes and formats of a clip's files, single frames, and files up to a number of bytes. A variant has
// one canonical name, the key of its row, however it was requested. Tests: variant.test.ts, test/variants.test.ts.
import type { MainKind } from '../../db/tables.ts'
import type { Size } from '../clips/geometry.ts'

/** Content-Type and blob extension by the ending in the address. */
export const VARIANT_TYPES = {
  jpg: { type: 'image/jpeg', extension: 'jpg', original: 'jpg' },
  webp: { type: 'image/webp', extension: 'webp', original: 'jpg' },
  gif: { type: 'image/gif', extension: 'gif', original: 'gif' },
  'anim.webp': { type: 'image/webp', extension: 'webp', original: 'gif' },
  mp4: { type: 'video/mp4', extension: 'mp4', original: 'mp4' },
} as const satisfies Record<string, { type: string; extension: string; original: MainKind }>

export type VariantEnding = keyof typeof VARIANT_TYPES

export interface Variant {
  ending: VariantEnding
  width?: number
  height?: number
  /** `inside` keeps all of the picture, `cover` fills the box and crops the rest. */
  fit: 'inside' | 'cover'
  /** Moment of a single frame. */
  atSeconds?: number
  /** True for the poster of a clip, and its sizes. */
  isPoster?: true
  /** Size of a file that is made as good as fits. */
  maxBytes?: number
}

const STILL_WIDTHS = [160, 320, 480, 640, 960]
const ANIMATED_WIDTHS = [240, 320]
const WIDTHS: Record<VariantEnding, number[]> = {
  jpg: STILL_WIDTHS,
  webp: STILL_WIDTHS,
  gif: ANIMATED_WIDTHS,
  'anim.webp': ANIMATED_WIDTHS,
  mp4: [480],
}
/** Attachment limits of chat and mail programs, in megabytes. */
const MEGABYTES = [2, 4, 8, 10, 20, 25]
/** Grid of frames without a signature: bounds their number. */
const FRAME = /^t((?:0|[1-9]\d{0,3})(?:\.5)?)$/

/**
 * Parses an unsigned name such as `w320.jpg`, `t1.5.jpg` or `max8m.gif`. Undefined for a name outside of the fixed set.
 */
export function parseFixedVariant(name: string): Variant | undefined {
  const ending = endings.find((known) => name.endsWith(`.${known}`))
  if (!ending) return undefined
  const options = name.slice(0, -ending.length - 1)
  const fit = 'inside'
  const width = WIDTHS[ending].find((known) => options === `w${known}`)
  if (width) return { ending, width, fit }
  const [, seconds] = FRAME.exec(options) ?? []
  if (seconds && ending === 'jpg') return { ending, atSeconds: Number(seconds), fit }
  const megabytes = MEGABYTES.find((known) => options === `max${known}m`)
  if (megabytes && (ending === 'gif' || ending === 'mp4')) return { ending, maxBytes: megabytes * 1_000_000, fit }
  return undefined
}

/** Longest first: `anim.webp` ends with `webp`. */
const endings = (Object.keys(VARIANT_TYPES) as VariantEnding[]).sort((a, b) => b.length - a.length)

const SIDES = { least: 16, most: 1920 }
const SIGNED =
  /^(?=.)(?:w:(?<w>[1-9]\d{1,3})(?:,|$))?(?:h:(?<h>[1-9]\d{1,3})(?:,|$))?(?:fit:(?<fit>inside|cover)(?:,|$))?(?:t:(?<t>(?:0|[1-9]\d{0,3})(?:\.\d{1,3})?)(?:,|$))?(?:fmt:(?<fmt>[a-z0-9.]+))?(?<!,)$/

/**
 * Parses the options of a signed address, `w:320,h:180,fit:cover,t:1.5,fmt:webp` in this order, each optional, and its
 * extension. Undefined when they are malformed or contradict each other.
 */
export function parseSignedVariant(options: string, extension: string): Variant | undefined {
  const { w, h, fit = 'inside', t, fmt = extension } = SIGNED.exec(options)?.groups ?? { fmt: '' }
  const ending = endings.find((known) => known === fmt)
  if (!ending || VARIANT_TYPES[ending].extension !== extension) return undefined
  const sides = [w, h].filter((side) => side !== undefined).map(Number)
  if (sides.some((side) => side < SIDES.least || side > SIDES.most)) return undefined
  if (fit === 'cover' && sides.length < 2) return undefined
  if (t !== undefined && !isStill({ ending })) return undefined
  return {
    ending,
    ...(w !== undefined && { width: Number(w) }),
    ...(h !== undefined && { height: Number(h) }),
    fit: fit === 'cover' ? 'cover' : 'inside',
    ...(t !== undefined && { atSeconds: Number(t) }),
  }
}

/** Key of the variant's row; equal for all addresses of the same file. */
export function nameOfVariant({ ending, width, height, fit, atSeconds, isPoster, maxBytes }: Variant): string {
  const options = [
    ...(isPoster ? ['poster'] : []),
    ...(width === undefined ? [] : [`w${width}`]),
    ...(height === undefined ? [] : [`h${height}`]),
    ...(fit === 'cover' ? ['cover'] : []),
    ...(atSeconds === undefined ? [] : [`t${atSeconds}`]),
    ...(maxBytes === undefined ? [] : [`max${maxBytes / 1_000_000}m`]),
  ]
  return `${options.join('-') || 'full'}.${ending}`
}

/** The poster at a second of a clip. */
export const posterAt = (seconds: number): Variant => ({
  ending: 'jpg',
  atSeconds: seconds,
  fit: 'inside',
  isPoster: true,
})

/** Stills are made while the request waits, others by a job. */
export const isStill = ({ ending }: Pick<Variant, 'ending'>): boolean => ending === 'jpg' || ending === 'webp'

/** Size of the variant of a file; null when the file itself is no larger. */
export function sizeOfVariant({ ending, width, height, fit }: Variant, file: Size): Size | null {
  const [across, down] = [(width ?? file.width) / file.width, (height ?? file.height) / file.height]
  const round = ending === 'mp4' ? even : whole
  if (fit === 'inside') {
    const scale = Math.min(across, down)
    return scale >= 1 ? null : { width: round(file.width * scale), height: round(file.height * scale) }
  }
  const shrink = 1 / Math.max(1, across, down)
  const box = { width: round(across * file.width * shrink), height: round(down * file.height * shrink) }
  return box.width >= file.width && box.height >= file.height ? null : box
}

const whole = (side: number) => Math.max(1, Math.round(side))
const even = (side: number) => Math.max(2, 2 * Math.round(side / 2))

export type FoundVariant =
  | { state: 'stored'; sha256: string; bytes: number }
  /** The clip's own file is no larger. */
  | { state: 'original' }
  | { state: 'processing'; progress: number }
