import type { MediaInfo } from '../../db/media-info.ts'
import type { Size } from '../clips/geometry.ts'

/** Size of the pictures that are decoded, before a crop. */
export function decodedSize(info: MediaInfo): Size {
  const { width, height } = info.edited?.source ?? info
  return ('decoded' in info && info.decoded) || { width, height }
}
