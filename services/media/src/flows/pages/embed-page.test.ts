import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { ClipView } from '../../core/clip-views/clip-view.ts'
import { elementSnippet, embedSnippet } from '../../core/clip-views/embed-snippet.ts'
import { assets } from './document.ts'
import { embedPage } from './embed-page.ts'
import { clipWith, HOSTILE } from './testing/clip-fixture.ts'
import { elementsOf } from './testing/markup.ts'

const EMBED_SCRIPT = String(assets.find('embed.js')?.body)

describe('embed page', () => {
  test.each<Partial<ClipView>>([
    {},
    { nsfw: true },
    { state: 'processing' },
    { state: 'failed' },
    { title: HOSTILE, siteName: HOSTILE },
  ])('nests and runs no script', (changes) => {
    const elements = elementsOf(embedPage(clipWith(changes)).html)
    expect(elements.filter(({ name }) => name === 'script')).toEqual([])
    const handlers = elements
      .flatMap(({ attributes }) => Object.keys(attributes))
      .filter((key) => /^on|^style$/.test(key))
    expect(handlers).toEqual([])
  })

  test('plays muted with controls, is not indexed, and leads to its page', () => {
    const page = embedPage(clipWith()).html
    expect(page).toMatch(/<video class="moving" autoplay[^>]* loop muted playsinline controls/)
    expect(page).toContain('<meta name="robots" content="noindex">')
    expect(page).toContain('<link rel="canonical" href="https://clips.example/gif/aB3dE9xK">')
    expect(page).toContain('href="https://clips.example/gif/aB3dE9xK" target="_blank" rel="noopener"')
  })

  test('keeps the gate of a sensitive clip inside the frame', () => {
    expect(embedPage(clipWith({ nsfw: true })).html).toMatch(/<details class="gate">.*<video.*<\/details>/s)
  })

  test('reloads while the clip is processing', () => {
    expect(embedPage(clipWith({ state: 'processing' })).html).toContain('<meta http-equiv="refresh" content="3">')
  })

  test('may be framed by any site and any application, with its own style only', () => {
    const css = /<style>(.*?)<\/style>/s.exec(embedPage(clipWith()).html)?.[1] ?? ''
    const policy = embedPage(clipWith()).policy
    expect(policy).toContain(`style-src 'sha256-${createHash('sha256').update(css).digest('base64')}';`)
    // Even `frame-ancestors *` excludes the pages of applications, which are not http.
    expect(policy).not.toContain('frame-ancestors')
    expect(policy).not.toContain('script-src')
  })

  test('the script is allowed only by its own address, and parses', () => {
    const scriptUrl = 'https://clips.example/assets/embed.js'
    expect(embedPage(clipWith(), { scriptUrl }).html).toContain(`<script src="${scriptUrl}" defer></script>`)
    expect(embedPage(clipWith(), { scriptUrl }).policy).toContain(`script-src ${scriptUrl};`)
    expect(() => new Function(EMBED_SCRIPT)).not.toThrow()
  })
})

test('the script of the player and of <media-clip> is no more than 4 KiB as browsers receive it', () => {
  expect(gzipSync(EMBED_SCRIPT).length).toBeLessThanOrEqual(4096)
})

describe('snippet', () => {
  test('is the iframe of the contract', () => {
    expect(embedSnippet(clipWith())).toBe(
      '<iframe src="https://clips.example/embed/aB3dE9xK" width="640" height="360" ' +
        'style="max-width:100%;height:auto;aspect-ratio:640/360" frameborder="0" scrolling="no" ' +
        'allowfullscreen allow="autoplay; fullscreen" loading="lazy" title="A cat jumps"></iframe>',
    )
  })

  test.each([
    [1920, 1080, 960, 540],
    [1080, 1920, 360, 640],
    [480, 270, 480, 270],
    [2, 1080, 1, 640],
  ])('of files of %i x %i is %i x %i', (width, height, shownWidth, shownHeight) => {
    expect(embedSnippet(clipWith({ width, height }))).toContain(
      `width="${shownWidth}" height="${shownHeight}" style="max-width:100%;height:auto;aspect-ratio:${shownWidth}/${shownHeight}"`,
    )
  })

  test('has the title of the clip whatever it holds, in one element', () => {
    const elements = elementsOf(embedSnippet(clipWith({ title: HOSTILE }), { width: 10, height: 5 }))
    expect(elements).toHaveLength(1)
    expect(elements[0]?.attributes).toMatchObject({ title: HOSTILE, width: '10', height: '5' })
  })

  test('names a clip without title by its id', () => {
    expect(embedSnippet(clipWith({ title: undefined }))).toContain('title="Clip aB3dE9xK"')
  })

  test('of the element names the script, the page and the size, and has the title as a link', () => {
    const elements = elementsOf(elementSnippet(clipWith({ title: HOSTILE })))
    expect(elements.map(({ name }) => name)).toEqual(['script', 'media-clip', 'a'])
    expect(elements[0]?.attributes.src).toBe('https://clips.example/embed.js')
    expect(elements[1]?.attributes).toMatchObject({
      src: 'https://clips.example/gif/aB3dE9xK',
      width: '640',
      height: '360',
    })
  })
})
