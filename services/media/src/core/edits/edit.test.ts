import { describe, expect, test } from 'vitest'
import { cleanEdit, describeEdit, type RawEdit, resolveCrop, sourceKey } from './edit.ts'

test.each<[RawEdit, object | undefined]>([
  [{}, undefined],
  [{ start: '', mute: '', speed: ' ' }, undefined],
  [{ mute: false }, undefined],
  [{ start: 0 }, { start: 0 }],
  [
    { start: '1:02.25', duration: 3 },
    { start: 62.25, duration: 3 },
  ],
  [{ start: '10:00' }, { start: 600 }],
  [
    { start: 1.23456, end: '2.5' },
    { start: 1.235, duration: 1.265 },
  ],
  [{ end: 4 }, { duration: 4 }],
  [
    { start: 10 / 3, duration: '3.3333333333333335', speed: 4 / 3 },
    { start: 3.333, duration: 3.333, speed: 1.33 },
  ],
  [{ start: 0.1 + 0.2 - 0.3 }, { start: 0 }],
  [{ crop: '10, 20,30,40' }, { crop: { x: 10, y: 20, width: 30, height: 40 } }],
  [{ crop: '9:16' }, { crop: { ratio: { width: 9, height: 16 } } }],
  [{ speed: '0.25' }, { speed: 0.25 }],
  [{ speed: 1.999 }, { speed: 2 }],
  [
    { mute: 'on', poster_at: '1.5' },
    { mute: true, posterAt: 1.5 },
  ],
  [{ caption: ' Hi  you ' }, { caption: { text: 'Hi you', position: 'bottom' } }],
  [{ caption: 'Hi', caption_position: 'Top' }, { caption: { text: 'Hi', position: 'top' } }],
  [{ caption: '\ufe0f', caption_position: 'top' }, undefined],
])('%o is read', (raw, edit) => {
  expect(cleanEdit(raw)).toEqual(edit)
})

test.each<[RawEdit, string]>([
  [{ start: -1 }, 'start'],
  [{ start: 'soon' }, 'start'],
  [{ start: '1:60' }, 'start'],
  [{ start: '1:2:3' }, 'start'],
  [{ start: '1e3' }, 'start'],
  [{ start: Number.NaN }, 'start'],
  [{ start: Number.POSITIVE_INFINITY }, 'start'],
  [{ start: '99999999999999999999' }, 'start'],
  [{ start: 86_401 }, 'start'],
  [{ duration: 0 }, 'duration'],
  [{ duration: 1, end: 2 }, 'end'],
  [{ start: 2, end: 2 }, 'end'],
  [{ crop: '1,2,3' }, 'crop'],
  [{ crop: '1,2,3,4,5' }, 'crop'],
  [{ crop: '1,2,0,4' }, 'crop'],
  [{ crop: '-1,2,3,4' }, 'crop'],
  [{ crop: '0:1' }, 'crop'],
  [{ crop: '16:9:1' }, 'crop'],
  [{ crop: '1,2:3,4' }, 'crop'],
  [{ crop: 'iw,ih,1,1' }, 'crop'],
  [{ crop: `${'9'.repeat(400)},1,1,1` }, 'crop'],
  [{ speed: 0.24 }, 'speed'],
  [{ speed: 4.01 }, 'speed'],
  [{ speed: 'fast' }, 'speed'],
  [{ mute: 'perhaps' }, 'mute'],
  [{ poster_at: 'end' }, 'poster_at'],
  [{ caption: 'a\nb' }, 'caption'],
  [{ caption_position: 'middle' }, 'caption_position'],
])('%o is refused', (raw, param) => {
  expect(() => cleanEdit(raw)).toThrow(expect.objectContaining({ code: 'invalid_field', details: { param } }))
})

describe('a crop', () => {
  const picture = { width: 1280, height: 720 }
  test.each([
    [
      { width: 1, height: 1 },
      { x: 280, y: 0, width: 720, height: 720 },
    ],
    [
      { width: 9, height: 16 },
      { x: 437, y: 0, width: 404, height: 720 },
    ],
    [
      { width: 16, height: 9 },
      { x: 0, y: 0, width: 1280, height: 720 },
    ],
    [
      { width: 2, height: 1 },
      { x: 0, y: 40, width: 1280, height: 640 },
    ],
  ])('of proportions %o is the largest from the middle', (ratio, crop) => {
    expect(resolveCrop({ ratio }, picture)).toEqual(crop)
  })

  test('has even sides, as every file of it, unless it is the whole picture', () => {
    const odd = { width: 161, height: 121 }
    expect(resolveCrop({ x: 3, y: 1, width: 17, height: 33 }, odd)).toEqual({ x: 3, y: 1, width: 16, height: 32 })
    expect(resolveCrop({ x: 0, y: 0, width: 161, height: 32 }, odd)).toEqual({ x: 0, y: 0, width: 160, height: 32 })
    expect(resolveCrop({ x: 0, y: 0, ...odd }, odd)).toEqual({ x: 0, y: 0, ...odd })
  })

  test.each([
    { x: 0, y: 0, width: 1281, height: 16 },
    { x: 1265, y: 0, width: 16, height: 16 },
    { x: 0, y: 0, width: 15, height: 700 },
    { ratio: { width: 999, height: 1 } },
  ])('%o is not in a picture of 1280 x 720', (crop) => {
    const refusal = { code: 'edit_out_of_range', details: { param: 'crop' } }
    expect(() => resolveCrop(crop, picture)).toThrow(expect.objectContaining({ code: refusal.code }))
  })
})

describe('the key of a source', () => {
  const file = 'ab'.repeat(32)

  test('is the hash of the file if nothing is changed', () => {
    expect([sourceKey(file, undefined), sourceKey(file, {})]).toEqual([file, file])
  })

  test('is the same for equal edits, and another for each other edit', () => {
    const crop = { x: 0, y: 0, width: 16, height: 16 }
    const edits = [
      { start: 1 },
      { duration: 1 },
      { crop },
      { speed: 2 },
      { mute: true as const },
      { posterAt: 1 },
      { start: 1.001 },
      { caption: { text: 'Hi', position: 'top' as const } },
      { caption: { text: 'Hi', position: 'bottom' as const } },
      { caption: { text: 'Ho', position: 'top' as const } },
    ]
    const keys = edits.map((edit) => sourceKey(file, edit))
    expect(new Set([...keys, file]).size).toBe(edits.length + 1)
    expect(sourceKey(file, { crop, start: 1 })).toBe(sourceKey(file, { start: 1, crop }))
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/)
  })

  test('is of the fields as callers see them', () => {
    expect(describeEdit({ crop: { x: 1, y: 2, width: 30, height: 40 }, posterAt: 1 })).toEqual({
      crop: '1,2,30,40',
      poster_at: 1,
    })
  })
})
