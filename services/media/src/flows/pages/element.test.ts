import { rgbaToThumbHash } from 'thumbhash'
import { expect, test } from 'vitest'
import { elementData } from './element.ts'
import { clipWith } from './testing/clip-fixture.ts'

/** Thumbhash of a picture of one colour. */
const hashOf = (...[red, green, blue, alpha = 255]: number[]) =>
  Buffer.from(
    rgbaToThumbHash(
      4,
      4,
      Array.from({ length: 64 }, (_, at) => [red, green, blue, alpha][at % 4] ?? 0),
    ),
  )

test('the element learns title, size on the page, colour, poster and videos', () => {
  expect(elementData(clipWith({ width: 1920, height: 1080, placeholder: hashOf(255, 0, 0) }))).toEqual({
    state: 'ready',
    title: 'A cat jumps',
    nsfw: false,
    width: 960,
    height: 540,
    color: expect.stringMatching(/^#f[0-9a-f]0\d0\d$/),
    poster: 'https://files.example/f/aB3dE9xK.jpg',
    sources: [
      { src: 'https://files.example/f/aB3dE9xK.webm', type: 'video/webm' },
      { src: 'https://files.example/f/aB3dE9xK.mp4', type: 'video/mp4' },
    ],
  })
})

test.each([
  ['of a transparent clip, behind which it would shine', { placeholder: hashOf(255, 0, 0, 100) }],
  ['of a sensitive clip', { placeholder: hashOf(255, 0, 0), nsfw: true }],
  ['of a clip whose colours are unknown', {}],
])('there is no colour %s', (_name, changes) => {
  expect(elementData(clipWith(changes)).color).toBeUndefined()
})

test('a clip that is processing names only stored files', () => {
  expect(elementData(clipWith({ state: 'processing' }))).not.toHaveProperty('poster')
  const showable = elementData(clipWith({ state: 'processing', isShowable: true }))
  expect(showable.sources).toEqual([{ src: 'https://files.example/f/aB3dE9xK.mp4', type: 'video/mp4' }])
})
