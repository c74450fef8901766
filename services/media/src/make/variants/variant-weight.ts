import { fitVideo } from '../../core/clips/geometry.ts'
import type { Variant } from '../../core/variants/variant.ts'
import type { MediaInfo } from '../../db/media-info.ts'
import { weightOf } from '../plan/job-weight.ts'
import { secondsOf } from '../plan/run-limits.ts'
import { MAX_BUILDS } from './fit-bytes.ts'

/**
 * Cost of a variant, which is made from the clip's own mp4: neither its source's size nor frames before a part count.
 */
export function variantWeight(info: MediaInfo, { maxBytes }: Variant): number {
  const builds = maxBytes === undefined ? 1 : MAX_BUILDS
  return weightOf(builds * secondsOf(fitVideo(info), info.frames))
}
