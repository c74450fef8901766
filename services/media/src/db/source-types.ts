// Types of media that a source may have. A type is known by the file's bytes (make/probe/sniff.ts), never by its name
// or a header. Tests: test/source-types.slow.test.ts.
import { inWords } from '@services/common/list-in-words'
import type { MediaType } from './media-info.ts'

interface SourceType {
  mime: string
  /** The name that people use. */
  name: string
  /** Endings of such files, for a file dialog. */
  endings: readonly string[]
}

export const SOURCE_TYPES: Readonly<Record<MediaType, SourceType>> = {
  gif: { mime: 'image/gif', name: 'GIF', endings: ['.gif'] },
  mp4: { mime: 'video/mp4', name: 'MP4', endings: ['.mp4'] },
  webm: { mime: 'video/webm', name: 'WebM', endings: ['.webm'] },
  mov: { mime: 'video/quicktime', name: 'MOV', endings: ['.mov'] },
  mkv: { mime: 'video/x-matroska', name: 'MKV', endings: ['.mkv'] },
  '3gp': { mime: 'video/3gpp', name: '3GP', endings: ['.3gp'] },
  apng: { mime: 'image/apng', name: 'APNG', endings: ['.apng', '.png'] },
  webp: { mime: 'image/webp', name: 'animated WebP', endings: ['.webp'] },
  avif: { mime: 'image/avif', name: 'AVIF sequence', endings: ['.avif', '.avifs'] },
}

/** Types of the specification, which are always accepted. */
export const USUAL_TYPES: readonly MediaType[] = ['gif', 'mp4', 'webm']

export const ALL_TYPES = Object.keys(SOURCE_TYPES) as MediaType[]

/** Media types that MEDIA_SOURCE_TYPES may add. */
export const ADDABLE_MIMES = ALL_TYPES.filter((type) => !USUAL_TYPES.includes(type)).map(mimeOf)

export function mimeOf(type: MediaType): string {
  return SOURCE_TYPES[type].mime
}

/** `image/gif, video/mp4 and video/webm`, in the order of the table. */
export const mimesInWords = (types: readonly MediaType[]): string => inWords(inOrder(types).map(mimeOf), 'and')

/** `GIF, MP4 or WebM`. */
export const namesInWords = (types: readonly MediaType[], word: string): string =>
  inWords(
    inOrder(types).map((type) => SOURCE_TYPES[type].name),
    word,
  )

/** The `accept` attribute of a file dialog. */
export const fileDialogTypes = (types: readonly MediaType[]): string =>
  [...inOrder(types).map(mimeOf), ...inOrder(types).flatMap((type) => SOURCE_TYPES[type].endings)].join()

const inOrder = (types: readonly MediaType[]) => ALL_TYPES.filter((type) => types.includes(type))
