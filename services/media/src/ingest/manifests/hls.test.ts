import { describe, expect, test } from 'vitest'
import { readHls } from './hls.ts'

const URL = 'https://site.example/a/list.m3u8'
const limits = { seconds: 30, pieces: 200 }
const playlist = (...lines: string[]) =>
  ['#EXTM3U', '#EXT-X-TARGETDURATION:1', ...lines, '#EXT-X-ENDLIST', ''].join('\n')
const second = (uri: string) => ['#EXTINF:1,', uri]
const times = (count: number, line: (index: number) => string[]) =>
  Array.from({ length: count }, (_, i) => line(i)).flat()
const unsupported = (reason: string) => ({ code: 'unsupported_site_content', details: { reason } })

const variant = (attributes: string, uri: string) => `#EXT-X-STREAM-INF:BANDWIDTH=1000${attributes}\n${uri}\n`
const chosen = (...variants: string[]) => readHls(`#EXTM3U\n${variants.join('')}`, URL, limits)

describe('a master', () => {
  test('offers the largest picture up to 1080p, however it is turned', () => {
    const [huge, small, tall, strange] = [
      variant(',RESOLUTION=3840x2160', 'huge'),
      variant(',RESOLUTION=640x360', 'small'),
      variant(',RESOLUTION=1080x1920', 'tall'),
      variant(',RESOLUTION=1920x1080,CODECS="dvh1.05"', 'strange'),
    ]
    expect(chosen(huge, small, strange, tall)).toEqual({ playlists: ['https://site.example/a/tall'] })
    expect(chosen(huge)).toEqual({ playlists: ['https://site.example/a/huge'] })
  })

  test('of one size offers the one of the highest rate', () => {
    expect(chosen(variant('', 'low'), variant('0', '/high'))).toEqual({ playlists: ['https://site.example/high'] })
  })

  test('names the sound where it is apart, by default the one that is marked so', () => {
    const sound = (name: string, more: string) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="${name}"${more}\n`
    const picture = variant(',AUDIO="g"', 'p')
    const apart = ['https://site.example/a/p', 'https://site.example/a/de']
    const [english, german] = [sound('en', ',URI="en"'), sound('de', ',DEFAULT=YES,URI="de"')]
    expect(chosen(english, german, picture)).toEqual({ playlists: apart })
    expect(chosen(sound('in it', ',DEFAULT=YES'), picture)).toEqual({ playlists: [apart[0]] })
  })

  test('without a picture is refused', () => {
    expect(() => chosen(variant(',CODECS="mp4a.40.2"', 'p'))).toThrow(expect.objectContaining(unsupported('empty')))
  })
})

describe('a playlist of segments', () => {
  test('lists the addresses of all, after the beginning they share', () => {
    const text = playlist('#EXT-X-MAP:URI="/init"', ...second('1.m4s'), ...second('https://cdn.site.example/2.m4s'))
    const pieces = ['https://site.example/init', 'https://site.example/a/1.m4s', 'https://cdn.site.example/2.m4s']
    expect(readHls(text, URL, limits)).toEqual({ tracks: [{ pieces: pieces.map((url) => ({ url })) }] })
  })

  test('in one file is one range where they touch, and several where they do not', () => {
    const range = (range: string) => ['#EXTINF:1,', `#EXT-X-BYTERANGE:${range}`, 'f']
    const text = playlist('#EXT-X-MAP:URI="f",BYTERANGE="10@0"', ...range('5@10'), ...range('5'), ...range('5@30'))
    const url = 'https://site.example/a/f'
    expect(readHls(text, URL, limits)).toEqual({
      tracks: [
        {
          pieces: [
            { url, range: { offset: 0, length: 20 } },
            { url, range: { offset: 30, length: 5 } },
          ],
        },
      ],
    })
  })

  test('may be 30.5 s and 200 segments, and no more', () => {
    expect(readHls(playlist('#EXTINF:30.5,', 'p'), URL, limits)).toHaveProperty('tracks')
    expect(readHls(playlist(...times(200, (i) => ['#EXTINF:0.1,', `${i}`])), URL, limits)).toHaveProperty('tracks')
  })

  test.each([
    [
      '31 seconds',
      playlist(...times(31, () => second('p'))),
      { code: 'duration_exceeded', details: { limit: 30, actual: 31, hint: 'start,duration' } },
    ],
    ['one segment of an hour', playlist('#EXTINF:3600,', 'p'), { code: 'duration_exceeded' }],
    ['201 segments', playlist(...times(201, () => ['#EXTINF:0.1,', 'p'])), unsupported('too_many_segments')],
    ['10,000 segments', playlist(...times(10_000, () => ['#EXTINF:0.001,', 'p'])), unsupported('too_many_segments')],
    ['a live stream', playlist(...second('p')).replace('#EXT-X-ENDLIST', ''), unsupported('live')],
    ['AES-128', playlist('#EXT-X-KEY:METHOD=AES-128,URI="k"', ...second('p')), unsupported('encrypted')],
    [
      'samples encrypted',
      playlist('#EXT-X-KEY: METHOD=SAMPLE-AES,URI="skd://k"', ...second('p')),
      unsupported('encrypted'),
    ],
    [
      'a key for the session',
      `#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=AES-128,URI="k"\n${variant('', 'p')}`,
      unsupported('encrypted'),
    ],
    ['a discontinuity', playlist(...second('p'), '#EXT-X-DISCONTINUITY', ...second('p')), unsupported('discontinuous')],
    [
      'two beginnings',
      playlist('#EXT-X-MAP:URI="a"', ...second('p'), '#EXT-X-MAP:URI="b"', ...second('p')),
      unsupported('discontinuous'),
    ],
    ['nothing in it', playlist(), unsupported('empty')],
    ['a page', '<html>', unsupported('unreadable')],
    ['nothing at all', '', unsupported('unreadable')],
  ])('is refused for %s', (_, text, refusal) => {
    expect(() => readHls(text, URL, limits)).toThrow(expect.objectContaining(refusal))
  })

  test('that says it has no key is read', () => {
    expect(readHls(playlist('#EXT-X-KEY:METHOD=NONE', ...second('p')), URL, limits)).toHaveProperty('tracks')
  })
})
