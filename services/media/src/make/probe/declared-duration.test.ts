import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { clip, lyingClip } from '../../../test/clips.ts'
import { readDeclaredDuration } from './declared-duration.ts'

const head = async (path: Promise<string>, bytes = 64 * 1024) => (await readFile(await path)).subarray(0, bytes)

test.each([
  ['faststart.mp4', 'mp4', 2],
  // The header is behind the pictures, but a small file is here as a whole.
  ['plain.mp4', 'mp4', 2],
  ['long-sound.mp4', 'mp4', 1],
  ['alpha.webm', 'webm', 1],
  ['piped.webm', 'webm', undefined],
  ['audio-only.mp4', 'mp4', undefined],
  ['plain.gif', 'gif', undefined],
] as const)('%s says what its pictures last', async (name, type, seconds) => {
  const said = readDeclaredDuration(type, await head(clip(name), 1e6))
  expect(said === undefined ? undefined : Math.round(said * 100) / 100).toBe(seconds)
})

test('the duration in the header is returned unmeasured', async () => {
  expect(readDeclaredDuration('mp4', await head(lyingClip('faststart.mp4', 60)))).toBeCloseTo(120)
})

test('an incomplete header declares nothing, wherever it is cut', async () => {
  const whole = await head(clip('faststart.mp4'))
  const header = whole.indexOf('mdat')
  for (let length = 0; length < header; length += 7) {
    expect([undefined, 2]).toContain(readDeclaredDuration('mp4', whole.subarray(0, length)))
  }
  const webm = await head(clip('alpha.webm'))
  for (let length = 0; length < 1000; length += 7) {
    const said = readDeclaredDuration('webm', webm.subarray(0, length))
    expect([undefined, 1]).toContain(said && Math.round(said * 100) / 100)
  }
})

test('a header with any byte changed yields a number or nothing, and at once', async () => {
  for (const [type, name] of [
    ['mp4', 'faststart.mp4'],
    ['webm', 'alpha.webm'],
  ] as const) {
    const good = await head(clip(name), 1500)
    for (let offset = 0; offset < good.length; offset++) {
      for (const byte of [0x00, 0x01, 0x80, 0xff]) {
        const bytes = Buffer.from(good)
        bytes[offset] = byte
        const said = readDeclaredDuration(type, bytes)
        if (said !== undefined && !(said > 0 && said < Number.POSITIVE_INFINITY))
          expect.unreachable(`${offset}: ${said}`)
      }
    }
  }
})

test('an empty file, and one of zeros, say nothing', async () => {
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(5000)]) {
    expect(readDeclaredDuration('mp4', bytes)).toBeUndefined()
    expect(readDeclaredDuration('webm', bytes)).toBeUndefined()
  }
})
