import { expect, test } from 'vitest'
import { nameOfVariant, parseFixedVariant, parseSignedVariant, sizeOfVariant } from './variant.ts'

const FIXED = [
  ...['w160', 'w320', 'w480', 'w640', 'w960'].flatMap((width) => [`${width}.jpg`, `${width}.webp`]),
  ...['w240', 'w320'].flatMap((width) => [`${width}.gif`, `${width}.anim.webp`]),
  ...['t0.jpg', 't0.5.jpg', 't12.jpg', 't29.5.jpg', 'w480.mp4'],
  ...[2, 4, 8, 10, 20, 25].flatMap((megabytes) => [`max${megabytes}m.gif`, `max${megabytes}m.mp4`]),
]

test.each(FIXED)('%s is in the fixed set under its own name', (name) => {
  const variant = parseFixedVariant(name)
  expect(variant && nameOfVariant(variant)).toBe(name)
})

test.each([
  ...[
    'w161.jpg',
    'w0160.jpg',
    'w160.png',
    'w160',
    'w640.gif',
    'w160.anim.webp',
    'w320.mp4',
    'w480.webm',
    '.jpg',
    'jpg',
  ],
  ...['t.jpg', 't1.0.jpg', 't01.jpg', 't1.25.jpg', 't-1.jpg', 't1e1.jpg', 't1.webp', 't99999.jpg', 'W160.jpg'],
  ...['max3m.gif', 'max8m.webp', 'max8.gif', 'w160.jpg.jpg', 'w160 .jpg', 'w160,w320.jpg', 'full.webp', 'making.gif'],
])('%s is not in the fixed set', (name) => {
  expect(parseFixedVariant(name)).toBeUndefined()
})

test.each([
  ['w:200', 'jpg', 'w200.jpg'],
  ['w:320', 'webp', 'w320.webp'],
  ['w:320,h:180', 'webp', 'w320-h180.webp'],
  ['w:320,h:180,fit:inside', 'webp', 'w320-h180.webp'],
  ['w:320,h:180,fit:cover', 'mp4', 'w320-h180-cover.mp4'],
  ['w:320,h:180,fit:cover,t:1.5', 'jpg', 'w320-h180-cover-t1.5.jpg'],
  ['t:1.250', 'webp', 't1.25.webp'],
  ['h:100,fmt:anim.webp', 'webp', 'h100.anim.webp'],
  ['fmt:webp', 'webp', 'full.webp'],
])('signed options %s with .%s are the variant %s', (options, extension, name) => {
  const variant = parseSignedVariant(options, extension)
  expect(variant && nameOfVariant(variant)).toBe(name)
})

test.each([
  ...['', 'w:15', 'w:1921', 'h:9999', 'w:0320', 'w:320,', ',w:320', 'h:180,w:320', 'w:320,w:320', 'w:320h:180', 'x:1'],
  ...['fit:cover', 'w:320,fit:cover', 'w:320,fit:fill', 't:', 't:1.2345', 't:-1', 'fmt:png', 'fmt:gif', 'w:320;h:180'],
])('signed options %j are refused', (options) => {
  expect(parseSignedVariant(options, 'jpg')).toBeUndefined()
})

test.each(['gif', 'mp4'])('a single frame is no %s', (extension) => {
  expect(parseSignedVariant('t:1', extension)).toBeUndefined()
})

const file = { width: 1000, height: 562 }
test.each([
  ['w320.jpg', { width: 320, height: 180 }],
  ['w480.mp4', { width: 480, height: 270 }],
  ['w960.webp', { width: 960, height: 540 }],
])('%s keeps the shape of the clip', (name, size) => {
  const variant = parseFixedVariant(name)
  expect(variant && sizeOfVariant(variant, file)).toEqual(size)
})

test.each([
  ['w:1000', null],
  ['w:1200', null],
  ['w:1200,h:100', { width: 178, height: 100 }],
  ['w:100,h:100', { width: 100, height: 56 }],
  ['w:100,h:100,fit:cover', { width: 100, height: 100 }],
  ['w:1124,h:1124,fit:cover', { width: 562, height: 562 }],
  ['w:1920,h:1079,fit:cover', null],
])('%s is never larger than the clip', (options, size) => {
  const variant = parseSignedVariant(options, 'jpg')
  expect(variant && sizeOfVariant(variant, file)).toEqual(size)
})
