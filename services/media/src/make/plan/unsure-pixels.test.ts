import { describe, expect, test } from 'vitest'
import { type Area, findUnsurePixels, type LaidFrame } from './unsure-pixels.ts'

const canvas = { width: 8, height: 8 }
const area = (left: number, top: number, width: number, height: number): Area => ({ left, top, width, height })
const whole = area(0, 0, 8, 8)
const opaque = (place: Area, after: LaidFrame['after'] = 'kept') => ({ ...place, isOpaque: true, clears: false, after })
const unsure = (place: Area, after: LaidFrame['after'] = 'kept') => ({ ...opaque(place, after), isOpaque: false })
const corner = area(0, 0, 2, 2)

describe('transparent pixels', () => {
  test.each<[string, LaidFrame[], ReturnType<typeof findUnsurePixels>]>([
    ['are nowhere if the first frame covers all', [opaque(whole), unsure(corner)], null],
    ['are certain around a first frame that is smaller', [opaque(corner), opaque(whole)], 'certain'],
    ['may be in a first frame alone', [unsure(whole), unsure(corner), unsure(whole)], { area: whole, frames: 1 }],
    [
      'may be until a frame covers all',
      [unsure(whole, 'cleared'), opaque(whole), unsure(corner)],
      { area: whole, frames: 1 },
    ],
    [
      'are certain in a cleared place that the next frame leaves',
      [opaque(whole), opaque(corner, 'cleared'), opaque(area(4, 4, 1, 1))],
      'certain',
    ],
    [
      'may be in a cleared place',
      [opaque(whole), opaque(corner, 'cleared'), unsure(area(0, 0, 4, 4)), opaque(corner)],
      { area: corner, frames: 3 },
    ],
    ['are in no cleared place that is covered', [opaque(whole, 'cleared'), opaque(whole)], null],
    ['are certain before a canvas that is restored', [opaque(whole, 'restored'), unsure(corner)], 'certain'],
    [
      'may be in a frame on an empty canvas that is restored',
      [opaque(whole, 'restored'), unsure(whole)],
      { area: whole, frames: 2 },
    ],
    [
      'may be in a frame on a cleared canvas that is restored',
      [opaque(whole, 'cleared'), opaque(whole, 'restored'), unsure(whole), unsure(corner)],
      { area: whole, frames: 3 },
    ],
    [
      'are in no frame on a covered canvas that is restored',
      [opaque(whole), opaque(whole, 'restored'), unsure(whole)],
      null,
    ],
    [
      'may be where a frame replaces pixels',
      [opaque(whole), { ...unsure(corner), clears: true }],
      { area: corner, frames: 2 },
    ],
    [
      'are not sought outside of the canvas',
      [opaque(area(0, 0, 20, 20)), opaque(area(9, 9, 4, 4), 'cleared'), unsure(corner)],
      null,
    ],
  ])('%s', (_, frames, expected) => {
    expect(findUnsurePixels(canvas, frames)).toEqual(expected)
  })
})
