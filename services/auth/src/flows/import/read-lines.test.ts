import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { type Line, MAX_LINE_BYTES, readLines } from './read-lines.ts'

async function collect(chunks: Iterable<Uint8Array>): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of readLines(streamOf(chunks))) lines.push(line)
  return lines
}

async function* streamOf(chunks: Iterable<Uint8Array>) {
  yield* chunks
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

test('lines are the same wherever the stream is cut', async () => {
  const bytes = Buffer.from('\ufeff{"a":"ü"}\r\n\n  \n{"b":"😀"}\nlast')
  const expected = [
    { number: 1, text: '{"a":"ü"}' },
    { number: 4, text: '{"b":"😀"}' },
    { number: 5, text: 'last' },
  ]
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    )
    expect(await collect(chunks)).toEqual(expected)
  }
})

test('a line without end is not kept in memory, and the next one is read', async () => {
  const piece = Buffer.alloc(64 * 1024, 'x')
  const before = process.memoryUsage().arrayBuffers
  let kept = 0
  function* chunks() {
    for (let pieces = 0; pieces < 2_000; pieces++) yield Buffer.from(piece)
    // Twice, because what the first one finds is freed beside the program.
    collectGarbage()
    collectGarbage()
    kept = process.memoryUsage().arrayBuffers - before
    yield Buffer.from('\nnext\n')
  }
  expect(await collect(chunks())).toEqual([
    { number: 1, problem: `is longer than ${MAX_LINE_BYTES} bytes` },
    { number: 2, text: 'next' },
  ])
  expect(kept).toBeLessThan(50 * 1024 * 1024)
})

test('bytes that are not UTF-8 are a problem of their line', async () => {
  const lines = await collect([Buffer.from('good\n'), Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]), Buffer.from('good')])
  expect(lines).toEqual([
    { number: 1, text: 'good' },
    { number: 2, problem: 'is not UTF-8' },
    { number: 3, text: 'good' },
  ])
})
