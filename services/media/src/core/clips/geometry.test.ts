import { expect, test } from 'vitest'
import { fitGif, fitVideo } from './geometry.ts'

test.each([
  ['small stays small', 320, 240, 320, 240],
  ['odd becomes even, downwards', 321, 213, 320, 212],
  ['4K becomes 1080p', 3840, 2160, 1920, 1080],
  ['standing 4K becomes standing 1080p', 2160, 3840, 1080, 1920],
  ['wide is bound by its long side', 4000, 1000, 1920, 480],
  ['square is bound by its short side', 2000, 2000, 1080, 1080],
  ['division leaves no odd number', 4096, 2160, 1920, 1012],
  ['a pixel is doubled, as encoders need', 1, 1, 2, 2],
  ['a line keeps its length', 3, 1000, 2, 1000],
])('video: %s', (_, width, height, fitWidth, fitHeight) => {
  expect(fitVideo({ width, height })).toEqual({ width: fitWidth, height: fitHeight })
})

test.each([
  [1920, 1080, 480, 270],
  [1080, 1920, 270, 480],
  [321, 213, 321, 213],
  [3, 1000, 1, 480],
  [4000, 2, 480, 1],
])('gif: %i x %i becomes %i x %i', (width, height, fitWidth, fitHeight) => {
  expect(fitGif({ width, height }, 480)).toEqual({ width: fitWidth, height: fitHeight })
})
