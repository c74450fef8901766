// Page and player of an album in a browser: the keyboard, small screens, less motion, no script, and axe-core.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, keyboardFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { clip } from '../../../../test/clips.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { type Album, addAlbum } from './testing/albums.ts'

const LONG = `\u202e${'\u05d0'.repeat(199)}`

describe('an album in a browser', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let clips: string[]
  let album: Album

  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const settings = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([startTestService(settings), launchBrowser()])
    clips = []
    const files = ['page.mp4', 'plain.gif', 'small-sound.mp4', 'low.mp4'] as const
    for (const [n, fields] of [
      [['title', 'A cat jumps']],
      [['nsfw', 'true']],
      [['title', LONG]],
      [['title', 'x'.repeat(200)]],
      [['title', 'Waves']],
      [],
    ].entries() as ArrayIterator<[number, [string, string][]]>) {
      clips.push(idIn(await service.ready(await clip(files[n % files.length] ?? 'plain.gif'), fields)))
    }
    album = await addAlbum(service, { clips, title: 'A trip to the sea', description: 'Two days.\nMuch wind.' })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    onTestFinished(() => expect(complaints).toEqual([]))
    await page.goto(service.url + new URL(path).pathname)
    return page
  }

  const focused = (page: Page) =>
    page.evaluate<string>("document.activeElement.closest('li')?.querySelector('a').href.slice(-8) ?? ''")
  const playing = (page: Page) =>
    page.evaluate<string[]>(
      "[...document.querySelectorAll('.frame video[src]')].map((video) => video.src.slice(-12, -4))",
    )

  test.for([
    ['light', 'en', 1280],
    ['dark', 'de', 320],
  ] as const)('has no fault for axe-core and fits the screen: %s, %s, %i px', async ([colorScheme, locale, width]) => {
    const page = await open(album.page, { colorScheme, locale, viewport: { width, height: 800 } })
    expect(await page.evaluate('document.documentElement.lang')).toBe(locale)
    for (const path of [album.page, album.embed]) {
      await page.goto(path)
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    }
    await page.goto(album.page)
    expect(await keyboardFaults(page)).toEqual([])
  })

  test('arrow keys lead through the clips, and the clip in focus plays, one at a time', async () => {
    const page = await open(album.page, { viewport: { width: 1280, height: 800 } })
    await page.locator('.grid a').first().focus()
    await page.keyboard.press('ArrowRight')
    // The gate of the sensitive clip, which does not play.
    expect(await page.evaluate('document.activeElement.tagName')).toBe('SUMMARY')
    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toBe(clips[2])
    await expect.poll(() => playing(page)).toEqual([clips[2]])
    await page.keyboard.press('Home')
    expect(await focused(page)).toBe(clips[0])
    await expect.poll(() => playing(page)).toEqual([clips[0]])
    const isMuted = "document.querySelector('.frame video[src]').muted"
    expect(await page.evaluate(isMuted)).toBe(true)
    await page.keyboard.press('ArrowDown')
    expect(clips.indexOf(await focused(page))).toBeGreaterThan(3)
    await page.keyboard.press('ArrowUp')
    expect(await focused(page)).toBe(clips[0])
    await page.keyboard.press('End')
    expect(await focused(page)).toBe(clips[5])
    await page.locator('.grid a').nth(2).hover()
    await page.locator('.grid li:first-child a').hover()
    await expect.poll(() => playing(page)).toEqual([clips[0]])
    await page.mouse.move(0, 0)
    await expect.poll(() => playing(page)).toEqual([])
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/gif/${clips[5]}`)
  })

  test('a clip under the pointer plays after 150 ms; nothing moves where less motion is wanted', async () => {
    const page = await open(album.page)
    await page.clock.install({ time: 0 })
    await page.goto(album.page)
    await page.clock.pauseAt(3_600_000)
    const [first, other] = [page.locator('.grid li').first(), page.locator('.grid li').nth(4)]
    await first.hover()
    await page.clock.runFor(149)
    expect(await playing(page)).toEqual([])
    await page.clock.runFor(1)
    await expect.poll(() => playing(page)).toEqual([clips[0]])
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await expect.poll(() => playing(page)).toEqual([])
    await other.hover()
    await other.locator('a').focus()
    await page.clock.runFor(1000)
    expect(await playing(page)).toEqual([])
  })

  test('without script the sensitive clip opens by a click, and the player leads on by its arrows', async () => {
    const page = await open(album.page, { javaScriptEnabled: false })
    expect(await page.locator('.gate .frame').isVisible()).toBe(false)
    await page.locator('.gate summary').click()
    expect(await page.locator('.gate .frame').isVisible()).toBe(true)
    await page.goto(album.embed)
    for (const place of [2, 3]) {
      await page.locator('.arrow[rel=next]').click()
      await page.waitForURL(`**at=${clips[place - 1]}`)
      expect(await page.locator('.place').textContent()).toBe(`${place} / 6`)
    }
  })

  test('in the frame of another page the arrow keys lead on, and leave its way back as it was', async () => {
    const page = await open(album.page)
    const other = createServer((_, answer) => {
      answer.setHeader('content-type', 'text/html')
      answer.end(`<!doctype html><title>Other</title><iframe src="${album.embed}" width="480" height="320"></iframe>`)
    })
    await once(other.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void other.close())
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
    const length = await page.evaluate<number>('history.length')
    const frame = page.frameLocator('iframe')
    await frame.locator('.arrow[rel=next]').click()
    await expect.poll(() => frame.locator('.place').textContent()).toBe('2 / 6')
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => frame.locator('.place').textContent()).toBe('3 / 6')
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => frame.locator('.place').textContent()).toBe('2 / 6')
    expect(await page.evaluate('history.length')).toBe(length)
  })

  test('a reader of XML takes the feed', async () => {
    const page = await open(album.page)
    const { text } = await service.get(`/a/${album.id}/feed.xml`)
    const parsed = await page.evaluate<string[]>(
      `[...new DOMParser().parseFromString(${JSON.stringify(text)}, 'application/xml')
        .querySelectorAll('parsererror, entry > title')].map((each) => each.nodeName)`,
    )
    expect(parsed).toEqual(Array(6).fill('title'))
  })
})
