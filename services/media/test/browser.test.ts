import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, isBrowserThere, launchBrowser, type Page } from '@services/common/testing/browser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { clip, impatientTools, tools } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

describe.skipIf(!isBrowserThere)('in a browser', () => {
  let service: TestService
  let browser: Browser
  let id: string

  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const addresses = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    const settings = { ...addresses, MEDIA_EXTRAS: 'true' }
    ;[service, browser] = await Promise.all([startTestService(settings, { tools: impatientTools }), launchBrowser()])
    id = idIn(await service.upload(await clip('plain.mp4')))
  }, 30_000)
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const openPage = async (options: { javaScriptEnabled: boolean }) => {
    const page = await (await browser.newContext(options)).newPage()
    const complaints: string[] = []
    page.on('console', (message) => message.text().includes('favicon') || complaints.push(message.text()))
    page.on('requestfailed', (request) => complaints.push(request.url()))
    return { page, complaints: () => complaints.filter((text) => /policy|refused|\/f\//i.test(text)) }
  }

  test.each([true, false])('the page plays, with scripts or without (%s)', async (javaScriptEnabled) => {
    const { page, complaints } = await openPage({ javaScriptEnabled })
    await page.goto(`${service.url}/gif/${id}`)
    await playing(page)
    expect(complaints()).toEqual([])
  })

  test.each(['mp4', 'webm'])('the %s plays on page and player', async (kind) => {
    for (const path of ['gif', 'embed']) {
      const { page } = await openPage({ javaScriptEnabled: true })
      await page.route(
        (url) => /(mp4|webm)$/.test(url.pathname) && url.pathname !== `/f/${id}.${kind}`,
        (route) => route.abort(),
      )
      await page.goto(`${service.url}/${path}/${id}`)
      await playing(page)
      const source = page
        .locator('video.moving')
        .evaluate((video) => (video as unknown as { currentSrc: string }).currentSrc)
      expect(await source).toBe(`${service.url}/f/${id}.${kind}`)
    }
  })

  test('the player rests off screen, and where motion is unwanted until it is asked', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    const blog = `<div style="height: 3000px"></div><iframe src="${service.url}/embed/${id}" width="160" height="120" allow="autoplay"></iframe>`
    await page.goto(await startBlog(blog))
    const video = page.frameLocator('iframe').locator('video.moving')
    const isPaused = () => video.evaluate((each) => (each as unknown as { paused: boolean }).paused)
    await page.locator('iframe').scrollIntoViewIfNeeded()
    await playing(page, 'iframe')
    await page.evaluate('scrollTo(0, 0)')
    await expect.poll(isPaused).toBe(true)
    await page.locator('iframe').scrollIntoViewIfNeeded()
    await expect.poll(isPaused).toBe(false)

    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.goto(`${service.url}/embed/${id}`)
    expect(await page.locator('video.moving').isVisible()).toBe(false)
    expect(await page.locator('video.still').isVisible()).toBe(true)
  })

  test('the colours of the poster are there before it, and the AV1 copy plays once it is made', async ({ skip }) => {
    if (!tools.ffmpeg.av1Encoder) skip('this ffmpeg has no libsvtav1')
    const isMade = async () => (await service.get(`/f/${id}.av1.mp4`)).status
    await expect.poll(isMade, { timeout: 12_000, interval: 100 }).toBe(200)
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    for (const path of ['gif', 'embed']) {
      await page.goto(`${service.url}/${path}/${id}`)
      await playing(page)
      const shown = await page.locator('video.moving').evaluate((video) => {
        const { currentSrc } = video as unknown as { currentSrc: string }
        return [currentSrc, (globalThis as unknown as Browserish).getComputedStyle(video).backgroundImage]
      })
      expect(shown).toEqual([`${service.url}/f/${id}.av1.mp4`, expect.stringMatching(/^url\("data:image\/png;base64,/)])
    }
    expect(complaints()).toEqual([])
  }, 30_000)

  test('the embed of the result plays in a page of another site', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    const { body } = await service.get(`/media/${id}`, { token: service.token })
    await page.goto(await startBlog(`<h1>A blog</h1>${body.success.embed}`))
    await playing(page, 'iframe')
    expect(complaints()).toEqual([])
  })
})

interface Browserish {
  getComputedStyle(element: unknown): { backgroundImage: string }
}

/** The address of a page of another site. */
async function startBlog(body: string): Promise<string> {
  const blog = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end(body)
  }).listen(0, '127.0.0.1')
  await once(blog, 'listening')
  onTestFinished(() => void blog.close())
  return `http://localhost:${(blog.address() as AddressInfo).port}/`
}

/** Time passes in the clip. `evaluate` works without scripts of the page too. */
async function playing(page: Page, frame?: string): Promise<void> {
  const root = frame ? page.frameLocator(frame) : page
  const time = () =>
    root.locator('video.moving').evaluate((video) => (video as unknown as { currentTime: number }).currentTime)
  await expect.poll(time, { timeout: 8_000 }).toBeGreaterThan(0.2)
}
