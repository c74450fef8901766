import type { MediaInfo } from '../../db/media-info.ts'
import type { Size } from '../clips/geometry.ts'

/** Size of the pictures that are decoded, before a crop. */
export const decodedSize = ({ width, height, edited }: MediaInfo): Size => edited?.source ?? { width, height }
