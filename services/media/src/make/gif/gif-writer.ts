// Writes a GIF from raw frames. Pixels keep the shown color where that is good enough, and the others share a palette
// of their frame. LZW takes any entry that is good enough. Errors are measured against the frame itself, so they never
// add up, and tolerance.ts says how large they may be.
import type { Size } from '../../core/clips/geometry.ts'
import { colorError } from './color-error.ts'
import { type ChangedPixels, createPaletteMaker } from './frame-palette.ts'
import { DISPOSAL, type GifImage, gifFrame, gifHeader, trailerBlock } from './gif-file.ts'
import { createLossyLzw } from './lossy-lzw.ts'
import { CELL_BITS, createTolerance } from './tolerance.ts'

/**
 * Halves the bytes of ffmpeg's default palette at 1.3 dB of SSIM above it (thirteen real clips; none is 1 dB below).
 */
const TOLERANCE = 0.29

/**
 * A GIF that will be too large gets coarser step by step, which shows less than a smaller picture; no further than
 * this.
 */
const COARSEST = 2.5 * TOLERANCE
const COARSER = 1.25
const FRAMES_PER_STEP = 8
/** The first frames say little: the very first is large, and many clips begin with a still. */
const PART_UNTIL_FIRST_STEP = 0.2
/** Part of the budget to aim at, because later frames may be larger. */
const PART_OF_BUDGET = 0.97

/** The first frame may have a quarter of the errors, because they stay where nothing moves. */
const FIRST_SHIFT = 2

/** Error of a pixel that no color is shown for: more than any other. */
const NOT_SHOWN = 2 ** 30

/** Centiseconds; browsers slow down frames that are shorter. */
const SHORTEST_DELAY = 2

/** Alpha from which a pixel is opaque. */
const OPAQUE = 128

export interface GifFormat extends Size {
  /** Time of each frame. */
  delayCentiseconds: number
  /** 0 means forever, null plays once. */
  loopCount: number | null
  /** Frames have 4 bytes a pixel instead of 3. */
  hasAlpha: boolean
  /** Bytes that this many frames should not exceed. */
  budget: { bytes: number; frames: number }
}

export interface GifWriter {
  /** Takes a frame, row by row; its bytes may be overwritten afterwards. */
  write(frame: Uint8Array): void
  /** Gives the last image the time up to the end of the clip, if that is less than a frame away. */
  end(totalCentiseconds: number): void
}

/** Writes to `emitBytes`. A frame that repeats the one before, or changes nothing visible, makes that last longer. */
export function createGifWriter(format: GifFormat, emitBytes: (bytes: Buffer) => void): GifWriter {
  const { width, height, delayCentiseconds, hasAlpha } = format
  const pixels = width * height
  const shown = new Uint8Array(3 * pixels)
  /** 1 for each pixel that viewers see in a color. */
  const isShown = new Uint8Array(pixels)
  const isOpaque = new Uint8Array(pixels).fill(1)
  const keptErrors = new Int32Array(pixels)
  const flags = new Uint8Array(pixels)
  const tolerance = createTolerance(format)
  const mostChanged = new Int32Array(pixels)
  const makePalette = createPaletteMaker(width)
  const encode = createLossyLzw(pixels, width)
  const last = new Uint8Array((hasAlpha ? 4 : 3) * pixels)
  const opaquePart = hasAlpha ? new Uint8Array(3 * pixels) : undefined
  /** The last image, whose delay is not known yet. */
  let image: GifImage | undefined
  let delay = 0
  let frames = 0
  let share = TOLERANCE
  let written = 0
  let writtenAtStep = 0

  const emit = (bytes: Buffer) => {
    written += bytes.length
    emitBytes(bytes)
  }

  /** Expects the other frames to be as large as the last few. */
  function keepToBudget({ bytes, frames: expected }: GifFormat['budget']) {
    if (frames % FRAMES_PER_STEP !== 0) return
    const atEnd = written + ((written - writtenAtStep) / FRAMES_PER_STEP) * (expected - frames)
    writtenAtStep = written
    const isTooLarge = atEnd > PART_OF_BUDGET * bytes
    if (isTooLarge && frames >= PART_UNTIL_FIRST_STEP * expected) share = Math.min(COARSEST, share * COARSER)
  }

  /** Black where the frame is transparent. */
  function takeOpaque(frame: Uint8Array, part: Uint8Array): Uint8Array {
    for (let pixel = 0; pixel < pixels; pixel++) {
      isOpaque[pixel] = frame[4 * pixel + 3]! >= OPAQUE ? 1 : 0
      for (let channel = 0; channel < 3; channel++) {
        part[3 * pixel + channel] = isOpaque[pixel] === 1 ? frame[4 * pixel + channel]! : 0
      }
    }
    return part
  }

  /** Compares a frame with the shown picture: which pixels cannot keep their color, and which errors each may have. */
  function compare(frame: Uint8Array): ChangedPixels {
    const { cells, cellsAcross } = tolerance
    const shift = image || hasAlpha ? 0 : FIRST_SHIFT
    for (let y = 0, pixel = 0; y < height; y++) {
      const row = (y >> CELL_BITS) * cellsAcross
      for (let x = 0; x < width; x++, pixel++) {
        const at = 3 * pixel
        const most = cells[row + (x >> CELL_BITS)]!
        const error = colorError(
          shown[at]! - frame[at]!,
          shown[at + 1]! - frame[at + 1]!,
          shown[at + 2]! - frame[at + 2]!,
        )
        keptErrors[pixel] = error
        // The sign: a branch would be as unpredictable as noise.
        flags[pixel] = (most - error) >>> 31
        mostChanged[pixel] = most >> shift
      }
    }
    if (hasAlpha) compareAlpha()
    else if (!image) changeAll()
    return boundsOf(flags)
  }

  function compareAlpha() {
    for (let pixel = 0; pixel < pixels; pixel++) {
      if (isOpaque[pixel] === 0) mostChanged[pixel] = -1
      if (isOpaque[pixel] !== isShown[pixel]) flags[pixel] = 1
      else if (isOpaque[pixel] === 0) flags[pixel] = 0
    }
  }

  function changeAll() {
    keptErrors.fill(NOT_SHOWN)
    flags.fill(1)
  }

  function boundsOf(flags: Uint8Array): ChangedPixels {
    const bounds = { left: width, top: height, right: 0, bottom: 0, count: 0, flags }
    for (let y = 0, pixel = 0; y < height; y++) {
      for (let x = 0; x < width; x++, pixel++) {
        if (flags[pixel] === 0) continue
        bounds.count++
        if (x < bounds.left) bounds.left = x
        if (x >= bounds.right) bounds.right = x + 1
        if (y < bounds.top) bounds.top = y
        bounds.bottom = y + 1
      }
    }
    return bounds.count > 0 ? bounds : { ...bounds, left: 0, top: 0, right: 1, bottom: 1 }
  }

  function imageOf(frame: Uint8Array, changed: ChangedPixels): GifImage {
    const palette = makePalette(frame, changed)
    const bits = Math.max(2, Math.ceil(Math.log2(palette.colors + 1)))
    const data = encode({ frame, shown, keptErrors, mostChanged }, changed, palette, bits)
    const { left, top, right, bottom } = changed
    return {
      ...{ left, top, width: right - left, height: bottom - top, colors: palette.colors, bits },
      ...{ table: palette.bytes.slice(0, 3 * palette.colors), data: data.slice() },
    }
  }

  /** Viewers clear each image of a transparent clip, so all of the next one is written. */
  function clear(): ChangedPixels {
    for (let pixel = 0; pixel < pixels; pixel++) keptErrors[pixel] = isOpaque[pixel] === 1 ? NOT_SHOWN : 0
    return boundsOf(isOpaque)
  }

  /** Undefined if viewers need to see no other picture. */
  function nextImage(given: Uint8Array): GifImage | undefined {
    if (image && Buffer.compare(given, last) === 0) return undefined
    last.set(given)
    const frame = opaquePart ? takeOpaque(given, opaquePart) : given
    tolerance.measure(frame, share)
    const changed = compare(frame)
    if (image && changed.count === 0) return undefined
    isShown.set(isOpaque)
    return imageOf(frame, hasAlpha ? clear() : changed)
  }

  const emitImage = () => {
    if (image) emit(gifFrame(image, hasAlpha ? DISPOSAL.toBackground : DISPOSAL.none, delay))
  }

  emit(gifHeader(format, format.loopCount))
  return {
    write(given) {
      keepToBudget(format.budget)
      frames++
      const next = nextImage(given)
      if (!next) {
        delay += delayCentiseconds
        return
      }
      emitImage()
      image = next
      delay = delayCentiseconds
    },
    end(totalCentiseconds) {
      const missing = totalCentiseconds - frames * delayCentiseconds
      if (Math.abs(missing) < delayCentiseconds) delay = Math.max(SHORTEST_DELAY, delay + missing)
      emitImage()
      emit(trailerBlock)
    },
  }
}
