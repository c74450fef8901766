import { describe, expect, test } from 'vitest'
import { cleanCaption, layOutCaption } from './caption.ts'

const hd = { width: 1280, height: 720 }

test.each([
  ['  two   words ', 'two words'],
  ['one\u00a0blank', 'one blank'],
  ['e\u0301te\u0301', 'été'],
  ['Ünïcödé Ελληνικά Кириллица Հայերեն ქართული', 'Ünïcödé Ελληνικά Кириллица Հայերեն ქართული'],
  ['I ❤\ufe0f it ★ → “quotes” 50 %', 'I ❤ it ★ → “quotes” 50 %'],
  [
    `%{pts} %{expr:1} \\n \\' ':fontfile=/etc/passwd [a];[b],`,
    `%{pts} %{expr:1} \\n \\' ':fontfile=/etc/passwd [a];[b],`,
  ],
  ['a trailing line break\n', 'a trailing line break'],
  ['\ufe0f a selector first', 'a selector first'],
  ['a face of the font 😀', 'a face of the font 😀'],
  ['W'.repeat(120), 'W'.repeat(120)],
])('%j is read as %j', (raw, text) => {
  expect(cleanCaption(raw)).toBe(text)
})

test.each([
  ['two\nlines', 'control'],
  ['a\ttab', 'control'],
  ['a\0b', 'control'],
  ['bell\u0007', 'control'],
  ['\u0085next', 'control'],
  ['x'.repeat(121), '120'],
  ['x '.repeat(100_000), '120'],
  ['party 🎉', 'U+1F389'],
  ['漢字', 'U+6F22'],
  ['カナ', 'U+30AB'],
  ['שלום', 'U+05E9'],
  ['سلام', 'U+0633'],
  ['नमस्ते', 'U+0928'],
  ['x\u0336 struck', 'U+0336'],
  ['turned \u202e round', 'U+202E'],
  ['joined\u200dup', 'U+200D'],
  ['a soft\u00adhyphen', 'U+00AD'],
  ['half \ud83d', 'U+D83D'],
])('%j is refused: %s', (raw, reason) => {
  const refusal = { code: 'invalid_field', details: { param: 'caption' }, message: expect.stringContaining(reason) }
  expect(() => cleanCaption(raw)).toThrow(expect.objectContaining(refusal))
})

describe('the lines of a caption', () => {
  const words = (count: number) => Array.from({ length: count }, (_, at) => 'abcdefgh'.slice(0, 3 + (at % 5))).join(' ')

  test('are as large as a twelfth of the picture where that fits', () => {
    expect(layOutCaption('when it works', hd)).toEqual({ lines: ['when it works'], fontSize: 60 })
    expect(layOutCaption('when it works', { width: 720, height: 1280 })?.fontSize).toBe(60)
    // A larger source is scaled down first.
    expect(layOutCaption('when it works', { width: 3840, height: 2160 })?.fontSize).toBe(90)
  })

  test('are of about the same length, three at most, and lose no word', () => {
    for (const count of [6, 10, 14, 20]) {
      const text = words(count)
      const { lines = [] } = layOutCaption(text, hd) ?? {}
      expect(lines.join(' ')).toBe(text)
      expect(lines.length).toBeLessThanOrEqual(3)
      const lengths = lines.map((line) => line.length)
      expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThan(16)
    }
  })

  test('get smaller letters before a word is broken', () => {
    const long = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerk'
    const { lines, fontSize = 0 } = layOutCaption(`ein ${long} fährt`, hd) ?? {}
    expect(lines).toContain(long)
    expect(fontSize).toBeLessThan(60)
    expect(layOutCaption('w'.repeat(60), hd)?.lines.join('')).toBe('w'.repeat(60))
  })

  test('of 120 letters of text fit a picture of any usual shape', () => {
    const text = words(21).slice(0, 120)
    const sizes = [hd, { width: 720, height: 1280 }, { width: 480, height: 480 }, { width: 640, height: 272 }]
    for (const picture of sizes) expect(layOutCaption(text, picture)?.lines.length).toBeLessThanOrEqual(3)
  })

  test.each([
    ['W'.repeat(120), { width: 270, height: 480 }],
    ['more words than fit', { width: 32, height: 32 }],
    ['three lines of it', { width: 640, height: 16 }],
  ])('%s in %o: there are none', (text, picture) => {
    expect(layOutCaption(text, picture)).toBeUndefined()
  })
})
