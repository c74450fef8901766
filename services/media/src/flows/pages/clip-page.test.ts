import { createHash } from 'node:crypto'
import { rgbaToThumbHash } from 'thumbhash'
import { describe, expect, test } from 'vitest'
import type { ClipView } from '../../core/clip-views/clip-view.ts'
import { clipPage } from './clip-page.ts'
import { embedPage } from './embed-page.ts'
import { clipWith, HOSTILE } from './testing/clip-fixture.ts'
import { elementsOf } from './testing/markup.ts'

const hostile = clipWith({
  title: HOSTILE,
  tags: [HOSTILE],
  siteName: HOSTILE,
  attribution: { site: HOSTILE, user: HOSTILE, url: HOSTILE },
})

describe('every state', () => {
  test.each<Partial<ClipView>>([
    {},
    { nsfw: true },
    { state: 'processing' },
    { state: 'failed' },
    { state: 'failed', failure: { code: 'x', message: HOSTILE, reference: 'https://clips.example/docs/errors#x' } },
    { title: undefined, tags: [] },
    { attribution: { site: 'twitter', user: 'jack' }, hasAudio: true },
    hostile,
    { ...hostile, state: 'processing' },
    { ...hostile, nsfw: true },
  ])('nests, runs no script but its own and has no style but its own', (changes) => {
    const elements = elementsOf(clipPage(clipWith(changes)).html)
    expect(elements.slice(0, 2).map(({ name }) => name)).toEqual(['html', 'head'])
    for (const { name, attributes } of elements) {
      expect(Object.keys(attributes).filter((key) => key.startsWith('on') || key === 'style')).toEqual([])
      if (name === 'script' && attributes.type !== 'application/ld+json') {
        expect(attributes.src).toMatch(/^https:\/\/clips\.example\/assets\/clip\.js\?v=\w+$/)
      }
    }
    expect(elements.filter(({ name }) => name === 'style')).toHaveLength(1)
    expect(elements.filter(({ name }) => name === 'h1')).toHaveLength(1)
  })

  test('links lead to http addresses only', () => {
    for (const { attributes } of elementsOf(clipPage(hostile).html)) {
      if (attributes.href) expect(attributes.href).toMatch(/^https:\/\/(clips|files)\.example/)
    }
  })
})

describe('head', () => {
  test('Open Graph: every structured property follows its root; the first video is the mp4 file itself', () => {
    expect(metaOf(clipWith(), 'property')).toEqual([
      ['og:type', 'video.other'],
      ['og:site_name', 'Clips'],
      ['og:title', 'A cat jumps'],
      ['og:description', 'A 4.1 s clip, 640 × 360.'],
      ['og:url', 'https://clips.example/gif/aB3dE9xK'],
      ['og:image', 'https://files.example/f/aB3dE9xK.jpg'],
      ['og:image:secure_url', 'https://files.example/f/aB3dE9xK.jpg'],
      ['og:image:type', 'image/jpeg'],
      ['og:image:width', '640'],
      ['og:image:height', '360'],
      ['og:image:alt', 'A cat jumps'],
      ['og:video', 'https://files.example/f/aB3dE9xK.mp4'],
      ['og:video:secure_url', 'https://files.example/f/aB3dE9xK.mp4'],
      ['og:video:type', 'video/mp4'],
      ['og:video:width', '640'],
      ['og:video:height', '360'],
      ['og:video', 'https://files.example/f/aB3dE9xK.webm'],
      ['og:video:secure_url', 'https://files.example/f/aB3dE9xK.webm'],
      ['og:video:type', 'video/webm'],
      ['og:video:width', '640'],
      ['og:video:height', '360'],
      ['video:duration', '4'],
      ['video:release_date', '2026-05-12T10:00:00.000Z'],
      ['video:tag', 'cat'],
      ['video:tag', 'jump'],
    ])
  })

  test('only https URLs are secure_url', () => {
    const { urls } = clipWith()
    const clip = clipWith({ urls: { ...urls, mp4: 'http://localhost:8082/f/x.mp4' } })
    const secure = metaOf(clip, 'property').filter(([name]) => name === 'og:video:secure_url')
    expect(secure).toEqual([['og:video:secure_url', urls.webm]])
  })

  test('the card is a player, and the only card', () => {
    const card = metaOf(clipWith(), 'name').filter(([name]) => name?.startsWith('twitter:'))
    expect(card).toEqual([
      ['twitter:card', 'player'],
      ['twitter:title', 'A cat jumps'],
      ['twitter:description', 'A 4.1 s clip, 640 × 360.'],
      ['twitter:image', 'https://files.example/f/aB3dE9xK.jpg'],
      ['twitter:player', 'https://clips.example/embed/aB3dE9xK'],
      ['twitter:player:width', '640'],
      ['twitter:player:height', '360'],
      ['twitter:player:stream', 'https://files.example/f/aB3dE9xK.mp4'],
      ['twitter:player:stream:content_type', 'video/mp4'],
    ])
  })

  test('oEmbed is found in both formats, canonical is the page', () => {
    const links = elementsOf(clipPage(clipWith()).html).filter(({ name }) => name === 'link')
    const page = encodeURIComponent('https://clips.example/gif/aB3dE9xK')
    expect(links.map(({ attributes }) => [attributes.rel, attributes.type, attributes.href])).toEqual([
      ['icon', 'image/svg+xml', 'https://clips.example/favicon.svg'],
      ['canonical', undefined, 'https://clips.example/gif/aB3dE9xK'],
      ['alternate', 'application/json+oembed', `https://clips.example/oembed?url=${page}&format=json`],
      ['alternate', 'text/xml+oembed', `https://clips.example/oembed?url=${page}&format=xml`],
    ])
  })

  test('the player on other sites is at most 960 x 640, however large the files are', () => {
    const meta = Object.fromEntries(metaOf(clipWith({ width: 1080, height: 1920 }), 'name'))
    expect([meta['twitter:player:width'], meta['twitter:player:height']]).toEqual(['360', '640'])
  })

  test('a sensitive clip has only text in previews: no picture, no video, no player', () => {
    const clip = clipWith({ nsfw: true })
    const page = clipPage(clip).html
    const properties = metaOf(clip, 'property').map(([name]) => name)
    expect(properties).toEqual(['og:type', 'og:site_name', 'og:title', 'og:description', 'og:url'])
    expect(metaOf(clip, 'name').filter(([name]) => name?.startsWith('twitter:'))).toEqual([
      ['twitter:card', 'summary'],
      ['twitter:title', 'A cat jumps'],
      ['twitter:description', 'A 4.1 s clip, 640 × 360.'],
    ])
    expect(page).not.toContain('application/ld+json')
    // Without a picture in the head, previews take one of the page.
    expect(elementsOf(page).filter(({ name }) => name === 'img')).toEqual([])
  })

  test('search engines get a VideoObject, whatever the title holds', () => {
    const json = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(
      clipPage(clipWith({ title: HOSTILE })).html,
    )?.[1]
    expect(JSON.parse(json ?? '')).toEqual({
      '@context': 'https://schema.org',
      '@type': 'VideoObject',
      name: HOSTILE,
      description: 'A 4.1 s clip, 640 × 360.',
      thumbnailUrl: ['https://files.example/f/aB3dE9xK.jpg'],
      uploadDate: '2026-05-12T10:00:00.000Z',
      duration: 'PT4.104S',
      contentUrl: 'https://files.example/f/aB3dE9xK.mp4',
      embedUrl: 'https://clips.example/embed/aB3dE9xK',
      width: 640,
      height: 360,
      keywords: 'cat, jump',
      isFamilyFriendly: true,
    })
  })

  test.each<[string, Partial<ClipView>, string | undefined, string | undefined]>([
    ['ready', {}, undefined, undefined],
    ['nsfw', { nsfw: true }, 'noindex', 'adult'],
    ['processing', { state: 'processing' }, 'noindex', undefined],
    ['failed', { state: 'failed' }, 'noindex', undefined],
  ])('%s: robots and rating for search engines', (_, changes, robots, rating) => {
    const meta = Object.fromEntries(metaOf(clipWith(changes), 'name'))
    expect([meta.robots, meta.rating]).toEqual([robots, rating])
  })
})

describe('body', () => {
  test('plays by itself and silently, webm before mp4, and falls back to the gif', () => {
    const [moving, ...rest] = elementsOf(clipPage(clipWith()).html).filter(({ name }) =>
      ['video', 'source', 'img'].includes(name),
    )
    expect(moving?.attributes).toMatchObject({ autoplay: '', loop: '', muted: '', playsinline: '', controls: '' })
    expect(moving?.attributes.poster).toBe('https://files.example/f/aB3dE9xK.jpg')
    expect(rest.slice(0, 3).map(({ attributes }) => attributes.src)).toEqual([
      'https://files.example/f/aB3dE9xK.webm',
      'https://files.example/f/aB3dE9xK.mp4',
      'https://files.example/f/aB3dE9xK.jpg',
    ])
    expect(clipPage(clipWith()).html).toContain('<a href="https://files.example/f/aB3dE9xK.gif"><img')
  })

  test('a viewer who wants no motion gets a video that waits', () => {
    const [moving, still] = elementsOf(clipPage(clipWith()).html).filter(({ name }) => name === 'video')
    expect(moving?.attributes.class).toBe('moving')
    expect(still?.attributes).toMatchObject({ class: 'still', preload: 'none', controls: '' })
    expect(still?.attributes).not.toHaveProperty('autoplay')
  })

  test.each([
    [640, 360, '640', '360'],
    [360, 640, '360', '640'],
    [1920, 1080, '960', '540'],
    [1080, 1920, '360', '640'],
    [200, 150, '200', '150'],
    [3000, 2, '960', '1'],
  ])('a %i x %i clip is shown at %s x %s, never larger than it is', (width, height, shownWidth, shownHeight) => {
    const video = elementsOf(clipPage(clipWith({ width, height })).html).find(({ name }) => name === 'video')
    expect(video?.attributes).toMatchObject({ width: shownWidth, height: shownHeight })
  })

  test('a sensitive clip is behind a click, an ordinary one is not', () => {
    expect(clipPage(clipWith({ nsfw: true })).html).toMatch(/<details class="gate">.*<video.*<\/video>\s*<\/details>/s)
    expect(clipPage(clipWith()).html).not.toContain('class="gate">')
  })

  test('while the clip is processing the page says so, reloads, and links to no file', () => {
    const page = clipPage(clipWith({ state: 'processing' })).html
    expect(page).toContain('<meta http-equiv="refresh" content="3">')
    expect(page).toContain('role="status"')
    expect(page).not.toContain('files.example')
  })

  test('files are saved, not opened', () => {
    const links = elementsOf(clipPage(clipWith()).html).filter(({ attributes }) =>
      attributes.href?.includes('download'),
    )
    expect(links.map(({ attributes }) => attributes.href)).toEqual(
      ['gif', 'mp4', 'webm', 'jpg'].map((kind) => `https://files.example/f/aB3dE9xK.${kind}?download=1`),
    )
  })

  test('the page of a failed clip shows the reason and a way on, and does not reload', () => {
    const reference = 'https://clips.example/docs/errors#corrupt_media'
    const failure = { code: 'corrupt_media', message: 'The file is damaged.', reference }
    const page = clipPage(clipWith({ state: 'failed', failure })).html
    expect(page).toContain('could not be processed')
    expect(page).toContain('The file is damaged.')
    expect(page).toContain(`href="${reference}"`)
    expect(page).toContain('<a class="onward" href="https://clips.example/">')
    expect(page).not.toContain('http-equiv="refresh"')
    expect(page).not.toContain('files.example')
  })

  test('a credit is a nofollow link without an opener; an unsafe one is text', () => {
    const linked = clipPage(clipWith({ attribution: { site: 'twitter', user: 'jack' } })).html
    expect(linked).toContain('href="https://x.com/jack" rel="nofollow ugc noopener"')
    const unsafe = clipPage(clipWith({ attribution: { site: 'javascript:alert(1)' } })).html
    expect(unsafe).toContain('<span dir="auto">javascript:alert(1)</span>')
  })
})

describe('policy', () => {
  test('allows the inline style by its hash and files from their host, and forbids frames', () => {
    const css = /<style>(.*?)<\/style>/s.exec(clipPage(hostile).html)?.[1] ?? ''
    const hash = createHash('sha256').update(css).digest('base64')
    expect(clipPage(clipWith()).policy).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; img-src https://clips.example/favicon.svg https://files.example; ` +
        'media-src https://files.example; script-src https://clips.example/assets/clip.js; ' +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
  })

  test.each([
    ['page', clipPage],
    ['embed', embedPage],
  ] as const)('the %s shows the colours of the poster behind the player, by a style of their own', (_, page) => {
    const clip = clipWith({ placeholder: Buffer.from(rgbaToThumbHash(2, 1, [255, 0, 0, 255, 0, 0, 255, 255])) })
    const styles = [...page(clip).html.matchAll(/<style>(.*?)<\/style>/gs)].map(([, css = '']) => css)
    expect(styles[1]).toMatch(
      /^video { background: url\(data:image\/png;base64,[\w+/=]+\) center \/ contain no-repeat }$/,
    )
    const hashes = styles.map((css) => `'sha256-${createHash('sha256').update(css).digest('base64')}'`)
    expect(page(clip).policy).toContain(
      `style-src ${hashes.join(' ')}; img-src https://clips.example/favicon.svg https://files.example data:; media-src`,
    )
    expect(page({ ...clip, state: 'processing', isShowable: false }).html).not.toContain('data:image')
  })

  test('a transparent clip is shown on chequered squares, dark in dark mode, not on the colours of its placeholder', () => {
    const clip = clipWith({ placeholder: Buffer.from(rgbaToThumbHash(2, 1, [255, 0, 0, 255, 0, 0, 255, 0])) })
    for (const document of [clipPage(clip).html, embedPage(clip).html]) {
      const css = [...document.matchAll(/<style>(.*?)<\/style>/gs)][1]?.[1]
      expect(css).toMatch(/^video { background: repeating-conic-gradient/)
      expect(css).toContain('@media (prefers-color-scheme: dark) { video { background-image: repeating-conic-gradient')
      expect(css).not.toContain('data:image')
    }
  })
})

function metaOf(clip: ClipView, kind: 'name' | 'property') {
  return elementsOf(clipPage(clip).html)
    .filter(({ name, attributes }) => name === 'meta' && kind in attributes)
    .map(({ attributes }) => [attributes[kind], attributes.content])
}
