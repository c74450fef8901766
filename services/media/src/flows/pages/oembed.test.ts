import { describe, expect, test } from 'vitest'
import type { ClipView } from '../../core/clip-views/clip-view.ts'
import { embedSnippet } from '../../core/clip-views/embed-snippet.ts'
import { oembed as oembedAt, oembedXml, parseOembedQuery } from './oembed.ts'
import { clipWith, HOSTILE } from './testing/clip-fixture.ts'
import { elementsOf } from './testing/markup.ts'

const NOW = new Date('2026-05-12T12:00:00Z')
const oembed = (clip: ClipView, limits: Parameters<typeof oembedAt>[1] = {}) => oembedAt(clip, limits, NOW)

describe('query', () => {
  test.each([
    [{}, { format: 'json' }],
    [{ format: '' }, { format: 'json' }],
    [{ format: 'json', url: 'x', callback: 'y' }, { format: 'json' }],
    [
      { format: 'xml', maxwidth: '320', maxheight: '240' },
      { format: 'xml', maxwidth: 320, maxheight: 240 },
    ],
    [{ maxwidth: '320.9' }, { format: 'json', maxwidth: 320 }],
    [{ maxwidth: '', maxheight: '0' }, { format: 'json' }],
    [{ maxwidth: '-5', maxheight: 'wide' }, { format: 'json' }],
    [{ maxwidth: ['1', '2'], maxheight: '1e3' }, { format: 'json' }],
    [{ maxwidth: 'Infinity', maxheight: '0.5' }, { format: 'json' }],
  ])('%o', (query, expected) => {
    expect(parseOembedQuery(query)).toEqual(expected)
  })

  test.each(['yaml', 'JSON', 'jsonp', ['json', 'xml']])('format %s is not supported: 501', (format) => {
    expect(() => parseOembedQuery({ format })).toThrow(
      expect.objectContaining({ code: 'format_not_supported', status: 501 }),
    )
  })
})

describe('answer', () => {
  test('is a video with the same iframe as the snippet, and nothing undefined in its JSON', () => {
    const clip = clipWith({ attribution: { site: 'reddit', user: 'ann' } })
    expect(JSON.parse(JSON.stringify(oembed(clip)))).toEqual({
      version: '1.0',
      type: 'video',
      title: 'A cat jumps',
      author_name: 'u/ann on Reddit',
      author_url: 'https://www.reddit.com/user/ann',
      provider_name: 'Clips',
      provider_url: 'https://clips.example/',
      cache_age: 3600,
      html: embedSnippet(clip),
      width: 640,
      height: 360,
      thumbnail_url: 'https://files.example/f/aB3dE9xK.jpg',
      thumbnail_width: 640,
      thumbnail_height: 360,
    })
    expect(Object.keys(JSON.parse(JSON.stringify(oembed(clipWith({ title: undefined })))))).not.toContain('title')
  })

  test.each([
    [640, 360, {}, 640, 360, true],
    [640, 360, { maxwidth: 640, maxheight: 360 }, 640, 360, true],
    [640, 360, { maxwidth: 2000, maxheight: 2000 }, 640, 360, true],
    [640, 360, { maxwidth: 320 }, 320, 180, false],
    [640, 360, { maxheight: 180 }, 320, 180, false],
    [640, 360, { maxwidth: 320, maxheight: 90 }, 160, 90, false],
    [640, 360, { maxwidth: 639 }, 639, 359, false],
    [1920, 1080, {}, 960, 540, true],
    [1920, 1080, { maxwidth: 2000 }, 960, 540, true],
    [1080, 1920, { maxwidth: 1920 }, 360, 640, true],
    [1080, 1920, { maxwidth: 300 }, 300, 533, false],
    [640, 360, { maxwidth: 1 }, 1, 1, false],
    [309, 291, { maxwidth: 100 }, 100, 94, false],
    [360, 640, { maxwidth: 500, maxheight: 500 }, 281, 500, false],
    [4000, 2, { maxwidth: 100 }, 100, 1, false],
  ])('%i x %i within %o is %i x %i; thumbnail: %s', (width, height, limits, shownWidth, shownHeight, hasThumbnail) => {
    const answer = oembed(clipWith({ width, height }), limits)
    expect(answer).toMatchObject({ width: shownWidth, height: shownHeight })
    expect(answer.html).toContain(`width="${shownWidth}" height="${shownHeight}"`)
    const thumbnail = [answer.thumbnail_url, answer.thumbnail_width, answer.thumbnail_height]
    expect(thumbnail.every((member) => (member !== undefined) === hasThumbnail)).toBe(true)
  })

  test('marks a sensitive clip and shows no picture of it, nor a poster that does not exist yet', () => {
    expect(oembed(clipWith({ nsfw: true })).nsfw).toBe(true)
    expect(JSON.stringify(oembed(clipWith({ nsfw: true })))).not.toMatch(/thumbnail|files\.example/)
    expect(oembed(clipWith()).nsfw).toBeUndefined()
    expect(oembed(clipWith({ state: 'processing' })).thumbnail_url).toBeUndefined()
  })
})

test.for([
  [undefined, 3600],
  [2 * 3600, 3600],
  [60, 60],
  [0.5, 0],
] as const)('a clip that ends in %s s is cached for %s', ([seconds, cached]) => {
  const endsAt = seconds === undefined ? undefined : new Date(NOW.getTime() + seconds * 1000)
  expect(oembed(clipWith({ endsAt })).cache_age).toBe(cached)
})

describe('XML', () => {
  test('holds the members of the JSON form, escaped', () => {
    const xml = oembedXml(oembed(clipWith({ title: 'Tom & <Jerry>', nsfw: true }), { maxwidth: 320 }))
    expect(xml).toMatch(/^<\?xml version="1\.0" encoding="utf-8" standalone="yes"\?>\n<oembed><version>1\.0<\/version>/)
    expect(xml).toContain('<title>Tom &amp; &lt;Jerry&gt;</title>')
    expect(xml).toContain('<html>&lt;iframe src=&quot;https://clips.example/embed/aB3dE9xK&quot; width=&quot;320&quot;')
    expect(xml).toContain('<nsfw>true</nsfw>')
    expect(xml).not.toContain('thumbnail')
    expect(xml).not.toContain('undefined')
  })

  test('stays well-formed whatever the title holds', () => {
    const title = `${HOSTILE}]]>\u0000\u0007\ufffe\ud800 \u{1f600}`
    const xml = oembedXml(oembed(clipWith({ title })))
    expect(() => elementsOf(xml.replace(/^<\?.*\?>/, ''))).not.toThrow()
    expect(xml.isWellFormed()).toBe(true)
    for (const forbidden of ['\u0000', '\u0007', '\ufffe']) expect(xml).not.toContain(forbidden)
    expect(xml).toContain('\u{1f600}')
  })
})
