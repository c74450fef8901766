import { rename } from 'node:fs/promises'
import type { Rendition } from '../run/verify-renditions.ts'
import type { VariantMade } from './variant-work.ts'

/** The first build and two more. */
export const MAX_BUILDS = 3
/** A file that uses less of its bytes is made again, better. */
const GOOD_USE = 0.75
/** Part of the bytes that another build aims for, as prediction is imprecise. */
const AIM = { smaller: 0.9, larger: 0.93 }

/**
 * Makes the best file of at most `maxBytes`. `make` takes a share (0 to 1) of the full quality. Each build's share
 * follows from the bytes of the one before, so the same clip always gives the same file.
 */
export async function fitBytes(
  maxBytes: number,
  firstShare: number,
  make: (share: number) => Promise<Rendition>,
): Promise<VariantMade> {
  let share = firstShare
  let best: { share: number; file: Rendition } | undefined
  let smallest = Number.POSITIVE_INFINITY
  let tooLarge = Number.POSITIVE_INFINITY
  for (let build = 1; build <= MAX_BUILDS; build++) {
    const made = await make(share)
    smallest = Math.min(smallest, made.bytes)
    const ratio = maxBytes / made.bytes
    if (ratio >= 1) {
      if (!best || share > best.share) best = { share, file: await setAside(made) }
      if (share >= 1 || ratio <= 1 / GOOD_USE) break
      share = Math.min(1, share * AIM.larger * ratio, (share + tooLarge) / 2)
    } else {
      tooLarge = Math.min(tooLarge, share)
      if (best) break
      share *= AIM.smaller * ratio
    }
  }
  return best ? { file: best.file } : { smallest }
}

/** The next build writes to the same path. */
async function setAside(file: Rendition): Promise<Rendition> {
  const path = `${file.path}.fits`
  await rename(file.path, path)
  return { ...file, path }
}
