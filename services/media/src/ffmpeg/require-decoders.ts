import { ConfigError } from '@services/common/config/variables'
import type { MediaType } from '../db/media-info.ts'
import { mimeOf } from '../db/source-types.ts'
import { type Ffmpeg, listNames } from './binaries.ts'

/** Decoders of which a type needs one. Those of the others are in every build, or are missed only by some files. */
const neededBy: Partial<Record<MediaType, readonly string[]>> = {
  '3gp': ['h263'],
  apng: ['apng'],
  webp: ['apng'],
  // The one named `av1` decodes in hardware only.
  avif: ['libdav1d', 'libaom-av1'],
}

/** Ends the start where MEDIA_SOURCE_TYPES lists a type that this ffmpeg cannot decode. */
export async function requireDecoders(ffmpeg: Pick<Ffmpeg, 'path'>, types: readonly MediaType[]): Promise<void> {
  const needs = types.flatMap((type) => (neededBy[type] ? [{ type, oneOf: neededBy[type] }] : []))
  if (needs.length === 0) return
  const { names } = await listNames(ffmpeg.path, '-decoders')
  const problems = needs
    .filter(({ oneOf }) => !oneOf.some((name) => names.has(name)))
    .map(({ type, oneOf }) => `MEDIA_SOURCE_TYPES: ${mimeOf(type)} needs an ffmpeg with ${oneOf.join(' or ')}`)
  if (problems.length > 0) throw new ConfigError(problems)
}
