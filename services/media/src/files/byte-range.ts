import type { ByteRange } from '../blobs/blob-storage.ts'

/**
 * What a `Range` header asks of a file of `bytes` bytes (RFC 9110 section 14). Undefined: send everything, which is also
 * the answer to several ranges at once and to what is not understood.
 */
export function parseRange(header: string | undefined, bytes: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const length = Math.min(Number(last), bytes)
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes - 1 }
  }
  const start = Number(first)
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  if (last !== '' && Number(last) < start) return undefined
  return start >= bytes ? 'unsatisfiable' : { start, end }
}
