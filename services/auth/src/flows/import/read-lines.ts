import { isUtf8 } from 'node:buffer'

/** Fits both kinds of metadata at their largest with every character escaped, and the rest of a line. */
export const MAX_LINE_BYTES = 256 * 1024

/** A line, or the reason it cannot be read. Numbers count from 1, empty lines included. */
export type Line = { number: number; text: string } | { number: number; problem: string }

const LF = 0x0a

/** Splits bytes into lines and holds one at a time. Drops empty lines, a byte order mark and carriage returns. */
export async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let number = 1
  let parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const line = toLine(number, [...parts, chunk.subarray(start, end)], bytes + end - start)
      if (line) yield line
      number++
      parts = []
      bytes = 0
      start = end + 1
    }
    const rest = chunk.subarray(start)
    bytes += rest.length
    if (bytes > MAX_LINE_BYTES) parts = []
    else if (rest.length > 0) parts.push(rest)
  }
  const last = bytes > 0 ? toLine(number, parts, bytes) : undefined
  if (last) yield last
}

function toLine(number: number, parts: Uint8Array[], bytes: number): Line | undefined {
  if (bytes > MAX_LINE_BYTES) return { number, problem: `is longer than ${MAX_LINE_BYTES} bytes` }
  const line = Buffer.concat(parts)
  if (!isUtf8(line)) return { number, problem: 'is not UTF-8' }
  // Removes a byte order mark too, which is white space to JavaScript.
  const text = line.toString().trim()
  return text === '' ? undefined : { number, text }
}
