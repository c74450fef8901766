import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { clip, tools } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

describe('<media-clip> on a page of another site', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let id: string

  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const addresses = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([startTestService(addresses, { tools }), launchBrowser()])
    id = idIn(await service.upload(await clip('page.mp4'), [['title', 'A cat']]))
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  /**
   * Opens a page with the script and `body`; `told` reads the events of its elements, `requested` what it requested
   * from us.
   */
  async function open(
    body: string,
    { policy, ...options }: { policy?: string; javaScriptEnabled?: boolean; reducedMotion?: 'reduce' } = {},
  ) {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    const requested: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('request', (request) => {
      if (request.url().startsWith(service.url)) requested.push(new URL(request.url()).pathname)
    })
    await page.addInitScript(`
      window.told = []
      for (const name of ['ready', 'play', 'error'])
        addEventListener(name, ({ target, detail }) => target.localName === 'media-clip' && told.push([name, detail]), true)
    `)
    const html = `<!doctype html><script src="${service.url}/embed.js" async></script>${body}`
    await page.goto(await serve(html, policy))
    return {
      page,
      requested: () => requested,
      complaints: () => complaints.filter((text) => /policy|refused|violat|trusted/i.test(text)),
      told: () => page.evaluate('told.map(([name]) => name)'),
    }
  }

  const element = (attributes: string, of = id) =>
    `<media-clip src="${service.url}/gif/${of}" ${attributes}><a href="${service.url}/gif/${of}">The clip</a></media-clip>`

  const spacer = '<div><svg width="10" height="4000"></svg></div>'

  test('it shows the still first, plays when a quarter is visible and pauses outside', async () => {
    const { page, told } = await open(element('autoplay muted loop') + spacer)
    const video = page.locator('media-clip video')
    await video.waitFor({ state: 'attached' })
    expect(await page.getByRole('link', { name: 'The clip' }).isVisible()).toBe(false)
    expect(await page.locator('media-clip [part=poster]').getAttribute('alt')).toBe('A cat')
    await playing(page)
    expect(await told()).toEqual(['ready', 'play'])

    const isPaused = () => video.evaluate((each) => (each as unknown as { paused: boolean }).paused)
    // Three quarters and a bit of its 120 pixels are above the window.
    await page.evaluate('scrollTo(0, document.querySelector("media-clip").offsetTop + 95)')
    await expect.poll(isPaused).toBe(true)
    await page.evaluate('scrollTo(0, document.querySelector("media-clip").offsetTop + 60)')
    await expect.poll(isPaused).toBe(false)
    await expect.poll(told).toEqual(['ready', 'play', 'play'])
  })

  test('the link to a private clip shows it, and its address alone the text inside', async () => {
    const headers = { token: service.token }
    const hidden = idIn(await service.upload(await clip('page.mp4'), [['visibility', 'private']]))
    const { url, embed } = (await service.call('POST', `/media/${hidden}/links`, { headers })).body.success
    const { search } = new URL(url)
    const player = /src="([^"]*)"/.exec(embed)?.[1]?.replaceAll('&amp;', '&') ?? ''
    for (const link of [`/gif/${hidden}${search}`, `/gif/${hidden}?utm_source=a&${search.slice(1)}&fbclid=1`, player]) {
      const src = new URL(link, service.url).href.replaceAll('&', '&amp;')
      const { page } = await open(`<media-clip src="${src}" autoplay muted><a href="/">The clip</a></media-clip>`)
      await playing(page)
    }
    const { page: other } = await open(element('autoplay muted', hidden))
    await other.waitForFunction('told.some(([name]) => name === "error")')
    expect(await other.getByRole('link', { name: 'The clip' }).isVisible()).toBe(true)
  })

  test('another host cannot run scripts in the page', async () => {
    const sources = [{ src: '/none.mp4', type: 'video/mp4', innerHTML: '<img src=x onerror="document.title = `run`">' }]
    const data = {
      state: 'ready',
      title: 'A',
      nsfw: false,
      width: 16,
      height: 9,
      poster: `${service.url}/f/${id}.jpg`,
      sources,
    }
    const other = createFarServer((_request, response) => {
      response.writeHead(200, { 'access-control-allow-origin': '*', 'content-type': 'application/json' })
      response.end(JSON.stringify(data))
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const base = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const { page } = await open(
      `<media-clip src="${base}/gif/abc" autoplay muted><a href="/">The clip</a></media-clip>`,
    )
    await page.waitForFunction('told.some(([name]) => name === "error")')
    expect(await page.title()).toBe('')
    expect(
      await page.evaluate('document.querySelector("media-clip").shadowRoot.querySelectorAll("source img").length'),
    ).toBe(0)
  })

  test('it works under a policy without styles, inline scripts and markup from text', async () => {
    const policy = [
      ...["default-src 'none'", "style-src 'none'", `script-src ${service.url}`, `connect-src ${service.url}`],
      ...[`img-src ${service.url}`, `media-src ${service.url}`, "require-trusted-types-for 'script'"],
      "trusted-types 'none'",
    ].join('; ')
    const { page, complaints } = await open(element('autoplay muted loop'), { policy })
    await playing(page)
    expect(await page.locator('media-clip').boundingBox()).toMatchObject({ width: 1264, height: 120 })
    expect(await page.locator('media-clip [part=frame]').boundingBox()).toMatchObject({ width: 160, height: 120 })
    expect(complaints().filter((text) => !text.includes('favicon'))).toEqual([])
  })

  test('it requests a clip once, and only when the reader comes near', async () => {
    const { page, requested } = await open(`<p>Text</p>${spacer}${element('autoplay muted')}${element('poster-only')}`)
    const isDefined = 'customElements.get("media-clip") !== undefined'
    await page.waitForFunction(isDefined)
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
    expect(requested()).toEqual(['/embed.js'])
    await page.locator('media-clip').first().scrollIntoViewIfNeeded()
    await playing(page)
    expect(requested().filter((path) => path.endsWith('/data'))).toEqual([`/embed/${id}/data`])
  })

  test('without autoplay, and for readers who want less motion, it plays and pauses on request, by keyboard too', async () => {
    for (const reducedMotion of [undefined, 'reduce'] as const) {
      const attributes = reducedMotion ? 'autoplay muted loop' : 'muted loop'
      const { page, told, requested } = await open(element(attributes), reducedMotion ? { reducedMotion } : {})
      await expect.poll(told).toEqual(['ready'])
      const play = page.getByRole('button', { name: 'Play: A cat' })
      await play.waitFor()
      expect(requested().filter((path) => /mp4|webm/.test(path))).toEqual([])
      await play.press('Enter')
      await playing(page)
      await page.getByRole('button', { name: 'Pause: A cat' }).press('Space')
      await play.waitFor()
      expect(await told()).toEqual(['ready', 'play'])
    }
  })

  test('with poster-only it is a picture that leads to the page of the clip', async () => {
    const { page, requested, told } = await open(element('poster-only autoplay'))
    await expect.poll(told).toEqual(['ready'])
    expect(await page.locator('media-clip [part=link]').getAttribute('href')).toBe(`${service.url}/gif/${id}`)
    expect(requested().filter((path) => /mp4|webm/.test(path))).toEqual([])
  })

  test('a clip that is not safe for work shows neither picture nor colours before a click', async () => {
    const sensitive = idIn(await service.upload(await clip('page.mp4'), [['nsfw', 'true']]))
    const { page, requested, told } = await open(element('autoplay muted loop', sensitive))
    await expect.poll(told).toEqual(['ready'])
    expect(requested().filter((path) => path.startsWith('/f/'))).toEqual([])
    expect((await service.get(`/embed/${sensitive}/data`)).body.color).toBeUndefined()
    await page.getByRole('button', { name: 'Not safe for work' }).click()
    await playing(page)
  })

  test('the link inside stays visible where the clip cannot be shown: no scripts, no such clip, deleted, no clip at all', async () => {
    const deleted = idIn(await service.upload(await clip('plain.gif')))
    const { token } = service
    await service.call('DELETE', `/media/${deleted}`, { headers: { token } })
    for (const [of, detail] of [
      ['none1234', { status: 404 }],
      [deleted, { status: 410 }],
    ] as const) {
      const { page, told } = await open(element('autoplay muted', of))
      await expect.poll(told).toEqual(['error'])
      expect(await page.evaluate('told[0][1]')).toEqual(detail)
      expect(await page.getByRole('link', { name: 'The clip' }).isVisible()).toBe(true)
    }
    const scriptless = await open(element('autoplay muted'), { javaScriptEnabled: false })
    expect(await scriptless.page.getByRole('link', { name: 'The clip' }).isVisible()).toBe(true)
    const { page } = await open('<media-clip src="javascript:alert(1)"><a href="/">Elsewhere</a></media-clip>')
    await page.waitForFunction('customElements.get("media-clip") !== undefined')
    expect(await page.getByRole('link', { name: 'Elsewhere' }).isVisible()).toBe(true)
  })

  test('it follows its attributes: another clip, and controls', async () => {
    const other = idIn(await service.upload(await clip('plain.gif'), [['title', 'A dog']]))
    const { page } = await open(element('autoplay muted loop'))
    await playing(page)
    await page.evaluate(`{
      const clip = document.querySelector('media-clip')
      clip.setAttribute('controls', '')
      clip.setAttribute('src', '${service.url}/gif/${other}')
    }`)
    await playing(page)
    const shown = await page.locator('media-clip video').evaluate((each) => {
      const { controls, currentSrc } = each as unknown as Record<string, unknown>
      return { controls, currentSrc }
    })
    expect(shown).toEqual({ controls: true, currentSrc: `${service.url}/f/${other}.webm` })
  })

  test("the page's own videos are left alone", async () => {
    const own = `<video class="own" src="${service.url}/f/${id}.mp4" muted loop></video>`
    const { page } = await open(`${own}${spacer}${element('autoplay muted loop')}${spacer}`)
    await page.waitForFunction('customElements.get("media-clip") !== undefined')
    // Browsers pause those with `autoplay` themselves.
    await page.evaluate('document.querySelector(".own").play()')
    await page.locator('media-clip').scrollIntoViewIfNeeded()
    await playing(page)
    expect(await page.locator('.own').evaluate((each) => (each as unknown as { paused: boolean }).paused)).toBe(false)
  })
})

/** The address of a page of another site. */
async function serve(html: string, policy?: string): Promise<string> {
  const blog = createFarServer((_request, response) => {
    if (policy) response.setHeader('content-security-policy', policy)
    response.setHeader('content-type', 'text/html').end(html)
  }).listen(0, '127.0.0.1')
  await once(blog, 'listening')
  onTestFinished(() => void blog.close())
  return `http://localhost:${(blog.address() as AddressInfo).port}/`
}

/** Time passes in the clip. */
const playing = (page: Page) =>
  expect
    .poll(() =>
      page.locator('media-clip video').evaluate((each) => (each as unknown as { currentTime: number }).currentTime),
    )
    .toBeGreaterThan(0.2)
