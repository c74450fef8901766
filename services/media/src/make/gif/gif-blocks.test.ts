import { appendFile, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bomb, comment, control, gif, image, loop, screen, trailer } from '../../../test/gif-bytes.ts'
import { measureGif } from '../probe/gif-info.ts'
import { defaultProbeLimits } from '../probe/source-limits.ts'
import { rewriteGif } from './gif-rewrite.ts'

const folder = await mkdtemp(join(tmpdir(), 'gif-blocks-'))
let files = 0

async function file(...parts: Buffer[]): Promise<string> {
  const path = join(folder, `${files++}.gif`)
  await writeFile(path, Buffer.concat(parts))
  return path
}

const measure = (path: string) => measureGif(path, defaultProbeLimits)

describe('measuring', () => {
  test('delays are those that browsers show: 0 and 1 become 10', async () => {
    const frames = [{ delay: 0 }, { delay: 1 }, { delay: 2 }, { delay: 250 }]
    const measures = await measure(await file(gif(3, 2, frames, 7)))
    expect(measures).toMatchObject({ width: 3, height: 2, loopCount: 7, framesInsideCanvas: true })
    expect(measures.delaysCentiseconds).toEqual([10, 10, 2, 250])
  })

  test('a delay counts for the next picture only, comments in between do not matter', async () => {
    const path = await file(screen(1, 1), control({ delay: 50 }), comment('hi'), image({}), image({}), trailer)
    expect(await measure(path)).toMatchObject({ delaysCentiseconds: [50, 10], loopCount: null })
  })

  test('a frame beyond the canvas is noticed', async () => {
    const path = await file(gif(4, 4, [{ delay: 5 }, { delay: 5, left: 2, width: 3 }]))
    expect(await measure(path)).toMatchObject({ framesInsideCanvas: false })
  })

  test('frames outside the picture count in no size, wherever they are', async () => {
    const far = [
      { delay: 5, left: 60_000, width: 1 },
      { delay: 5, top: 60_000, height: 1 },
    ]
    const measures = await measure(await file(gif(4, 4, [{ delay: 5 }, ...far, { delay: 5, left: 2, width: 3 }])))
    expect(measures).toMatchObject({ width: 4, decoded: { width: 5, height: 4 }, framesInsideCanvas: false })
    expect(measures.delaysCentiseconds).toHaveLength(4)
  })

  test('a missing trailer is forgiven, what follows a trailer is not read', async () => {
    const whole = gif(2, 2, [{ delay: 5 }, { delay: 5 }])
    expect((await measure(await file(whole.subarray(0, -1)))).delaysCentiseconds).toHaveLength(2)
    expect((await measure(await file(whole, Buffer.from('<script>')))).delaysCentiseconds).toHaveLength(2)
  })
})

describe('a gif may be transparent', () => {
  const full = { delay: 5 }
  test.each([
    ['whose frames cover everything', [full, full], false],
    ['whose later frames leave out what stays', [full, { ...full, transparent: 1 }, { ...full, width: 1 }], false],
    ['whose first frame has a transparent colour', [{ ...full, transparent: 1 }, full], true],
    ['whose first frame is smaller', [{ ...full, width: 1 }, full], true],
    [
      'whose frame is cleared before a smaller one',
      [
        { ...full, disposal: 2 },
        { ...full, height: 1 },
      ],
      true,
    ],
    [
      'whose frame gives way to the empty canvas before a smaller one',
      [
        { ...full, disposal: 3 },
        { ...full, height: 1 },
      ],
      true,
    ],
    ['whose frame is cleared before a whole one', [{ ...full, disposal: 2 }, full], false],
  ])('%s: %#', async (_, frames, mayBeTransparent) => {
    expect(await measure(await file(gif(4, 4, frames)))).toMatchObject({ mayBeTransparent })
  })
})

describe('refusing', () => {
  test('a file truncated before the first pixel is corrupt; later it is repaired', async () => {
    const whole = gif(2, 2, [{ delay: 5 }, { delay: 5 }])
    const [first, second] = [
      [screen(2, 2), loop(0), control({ delay: 5 }), image({ width: 2, height: 2 })],
      [control({ delay: 5 }), image({ width: 2, height: 2 })],
    ].map((blocks) => Buffer.concat(blocks).length) as [number, number]
    // A descriptor and the size of its codes precede the pixels.
    const toPixels = 11 - image({ width: 2, height: 2 }).length
    const pixels = first + second + toPixels
    for (let length = 6; length < whole.length; length++) {
      const path = await file(whole.subarray(0, length))
      const made = await measure(path).catch(({ code }) => code)
      if (length < first + toPixels + 2) expect([length, made]).toEqual([length, 'corrupt_media'])
      else {
        const isBoundary = [first, first + control({ delay: 5 }).length, first + second].includes(length)
        const [delaysCentiseconds, repaired] = [length < pixels ? [5] : [5, 5], !isBoundary]
        expect([length, made]).toMatchObject([length, { delaysCentiseconds, repaired }])
      }
    }
  })

  test('bytes behind the frames that are no block are left out', async () => {
    const rest = Buffer.from('<script>')
    const path = await file(screen(2, 2), image({ width: 2, height: 2 }), rest, image({ width: 2, height: 2 }))
    expect(await measure(path)).toMatchObject({ delaysCentiseconds: [10], repaired: true })
  })

  test.each([
    ['a header alone', [screen(1, 1), trailer]],
    ['an empty canvas', [gif(0, 0, [{ delay: 5, width: 0, height: 1 }])]],
    ['an unknown block', [screen(1, 1), Buffer.from([0x99])]],
    ['another format', [Buffer.from('GIF90a0000000000')]],
  ])('%s is corrupt', async (_, parts) => {
    await expect(measure(await file(...parts))).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test.each([
    ['16000x16000', bomb(16_000, 16_000, 1), 'dimensions_exceeded'],
    ['65535x65535', bomb(65_535, 65_535, 1), 'dimensions_exceeded'],
    [
      'a small frame on a large canvas',
      gif(16_000, 16_000, [{ delay: 5, width: 1, height: 1 }]),
      'dimensions_exceeded',
    ],
    ['a frame larger than its 1x1 canvas', gif(1, 1, [{ delay: 5, left: 60_000 }]), 'dimensions_exceeded'],
    ['50 000 frames of 2000x2000', bomb(2000, 2000, 50_000), 'too_many_frames'],
    [
      '298 frames of one pixel on 4095x4095',
      gif(4095, 4095, Array(298).fill({ delay: 10, width: 1, height: 1 })),
      'too_many_frames',
    ],
    ['5000 small frames', bomb(2, 2, 5000), 'too_many_frames'],
    [
      'a million empty comments',
      Buffer.concat([screen(1, 1), Buffer.alloc(3e6, '\x21\xfe\x00', 'latin1')]),
      'corrupt_media',
    ],
  ])('%s is refused', async (_, bytes, code) => {
    await expect(measure(await file(bytes))).rejects.toMatchObject({ code })
  })

  test('5 s of 1080p at 30 frames a second pass, and 30 s at 16', async () => {
    for (const [frames, delay] of [
      [150, 3],
      [480, 6],
    ] as const) {
      const path = await file(gif(1920, 1080, Array(frames).fill({ delay, width: 1, height: 1 })))
      expect((await measure(path)).delaysCentiseconds).toHaveLength(frames)
    }
  })

  test('64 MB of one-byte blocks take no memory', async () => {
    const path = await file(screen(1, 1), Buffer.from([0x21, 0xfe]))
    const ones = Buffer.alloc(1024 * 1024, 1)
    for (let megabytes = 0; megabytes < 64; megabytes++) await appendFile(path, ones)
    const before = process.memoryUsage().rss
    await expect(measure(path)).rejects.toMatchObject({ code: 'corrupt_media' })
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 1024 * 1024)
  })
})

describe('rewriting', () => {
  async function rewrite(...parts: Buffer[]): Promise<Buffer> {
    const target = join(folder, `${files++}-rewritten.gif`)
    await rewriteGif(await file(...parts), target)
    return readFile(target)
  }

  const application = Buffer.from([0x21, 0xff, 11, ...Buffer.from('XMP DataXMP'), 3, ...Buffer.from('gps'), 0])
  const text = Buffer.from([0x21, 0x01, 12, ...Buffer.alloc(12), 2, ...Buffer.from('hi'), 0])
  const picture = image({ width: 2, height: 2 })

  test('a clean file stays as it is, byte for byte', async () => {
    const clean = gif(2, 2, [{ delay: 5 }, { delay: 7, transparent: 1, disposal: 2 }], 3)
    expect(await rewrite(clean)).toEqual(clean)
  })

  test('comments, texts, application data, a second loop block and what is appended are left out', async () => {
    const dirty = [
      ...[screen(2, 2), comment('home address'), loop(0), application, loop(9), control({ delay: 9 }), text],
      ...[control({ delay: 5 }), comment('x'), picture, trailer, Buffer.from('<script>alert(1)</script>')],
    ]
    const clean = Buffer.concat([screen(2, 2), loop(9), control({ delay: 5 }), picture, trailer])
    expect(await rewrite(...dirty)).toEqual(clean)
  })

  test('one loop block of several is kept before the first frame: the last, which browsers obey', async () => {
    const several = [screen(2, 2), loop(3), picture, loop(7), picture, loop(0), trailer]
    expect(await measure(await file(...several))).toMatchObject({ loopCount: 0 })
    expect(await rewrite(...several)).toEqual(Buffer.concat([screen(2, 2), loop(0), picture, picture, trailer]))
  })

  test('a loop block behind the frames is written before the first', async () => {
    const frames = [control({ delay: 5 }), picture, control({ delay: 7 }), picture]
    const rewritten = await rewrite(screen(2, 2), ...frames, loop(7), trailer)
    expect(rewritten).toEqual(Buffer.concat([screen(2, 2), loop(7), ...frames, trailer]))
  })

  test('the graphic control of a text is dropped with the text', async () => {
    const rewritten = await rewrite(screen(2, 2), control({ delay: 9 }), text, picture, trailer)
    expect(rewritten).toEqual(Buffer.concat([screen(2, 2), picture, trailer]))
  })

  test('a missing trailer is added, a missing loop is not', async () => {
    expect(await rewrite(screen(2, 2), picture)).toEqual(Buffer.concat([screen(2, 2), picture, trailer]))
  })

  test('a file larger than the copy buffer keeps every byte', async () => {
    const frames = Array.from({ length: 400 }, (_, n) => ({ delay: n + 2 }))
    const large = gif(100, 100, frames)
    expect(large.length).toBeGreaterThan(2_000_000)
    expect((await rewrite(large)).equals(large)).toBe(true)
  })
})
