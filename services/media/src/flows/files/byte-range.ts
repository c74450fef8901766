import type { ByteRange } from '../../store/blobs/blob-storage.ts'

/** Each part costs a read; players and resumed downloads ask for two or three. */
const MOST_RANGES = 16

/** Gap in bytes that costs less to send than the header of another part (RFC 9110 15.3.7.2). */
const SMALL_GAP = 128

/**
 * Parses a `Range` header (RFC 9110 section 14). The parts are in the order of the file and disjoint, so together they
 * never exceed it. Undefined means the whole file, even for a malformed header or too many ranges.
 */
export function parseRanges(header: string | undefined, bytes: number): ByteRange[] | 'unsatisfiable' | undefined {
  const list = /^bytes=(.*)$/i.exec(header ?? '')?.[1]?.split(',') ?? []
  const specs = list.map((spec) => spec.trim()).filter(Boolean)
  if (specs.length === 0 || specs.length > MOST_RANGES) return undefined
  const ranges = specs.map((spec) => parseRange(spec, bytes))
  if (ranges.includes('invalid')) return undefined
  const satisfiable = ranges.filter((range) => typeof range === 'object')
  return satisfiable.length === 0 ? 'unsatisfiable' : joinNear(satisfiable)
}

function parseRange(spec: string, bytes: number): ByteRange | 'unsatisfiable' | 'invalid' {
  const [, first, last] = /^(\d*)\s*-\s*(\d*)$/.exec(spec) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'invalid'
  if (first === '') {
    const length = Math.min(Number(last), bytes)
    return length === 0 ? 'unsatisfiable' : { start: bytes - length, end: bytes - 1 }
  }
  const start = Number(first)
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  if (last !== '' && Number(last) < start) return 'invalid'
  return start >= bytes ? 'unsatisfiable' : { start, end }
}

function joinNear(ranges: readonly ByteRange[]): ByteRange[] {
  const joined: ByteRange[] = []
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const before = joined.at(-1)
    if (before && range.start <= before.end + SMALL_GAP) before.end = Math.max(before.end, range.end)
    else joined.push({ ...range })
  }
  return joined
}
