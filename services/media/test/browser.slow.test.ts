import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { createFarServer } from '@services/common/testing/http/far-server'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { clip, clipOf, tools } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

describe('in a browser', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let id: string

  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const addresses = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    const settings = { ...addresses, MEDIA_EXTRAS: 'true' }
    ;[service, browser] = await Promise.all([startTestService(settings, { tools }), launchBrowser()])
    id = idIn(await service.upload(await clip('page.mp4')))
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const openPage = async (options: { javaScriptEnabled: boolean }) => {
    const context = await browser.newContext(options)
    // A video left playing costs more than all later tests.
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
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
      await page.goto(`${service.url}/${path}/${id}`)
      // A browser that plays one format alone chooses the same way.
      await page.evaluate(`{
        const video = document.querySelector('video.moving')
        video.querySelectorAll('source:not([src$="/f/${id}.${kind}"])').forEach((source) => source.remove())
        video.load()
      }`)
      await playing(page)
      const source = page
        .locator('video.moving')
        .evaluate((video) => (video as unknown as { currentSrc: string }).currentSrc)
      expect(await source).toBe(`${service.url}/f/${id}.${kind}`)
    }
  })

  test.each(['mp4', 'webm'])('the address of the %s itself plays, and obeys the mouse', async (kind) => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/f/${id}.${kind}`)
    await playing(page, { video: 'video' })
    await page.hover('video')
    // The button of the browser's own controls.
    await page.click('video', { position: { x: 25, y: 95 } })
    const isPaused = () => page.$eval('video', (each) => (each as unknown as { paused: boolean }).paused)
    await expect.poll(isPaused).toBe(true)
    expect(complaints()).toEqual([])
  })

  test.each(['mp4', 'webm'] as const)('an %s that was copied plays to its end', async (kind) => {
    const copied = idIn(await service.upload(await clip(`fits.${kind}`)))
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/f/${copied}.${kind}`)
    await playing(page, { video: 'video' })
    const duration = () => page.$eval('video', (each) => (each as unknown as { duration: number }).duration)
    expect(await duration()).toBeCloseTo(2, 1)
  })

  test.each(['gif', 'jpg'])('the address of the %s itself shows the picture', async (kind) => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/f/${id}.${kind}`)
    const width = () => page.$eval('img', (image) => (image as unknown as { naturalWidth: number }).naturalWidth)
    await expect.poll(width).toBeGreaterThan(0)
    expect(complaints()).toEqual([])
  })

  test('a token signs a browser in and out without scripts, and a wrong one does not', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: false })
    await page.goto(`${service.url}/session?next=%2Fdocs`)
    const send = async (token: string) => {
      await page.fill('[name=token]', token)
      await page.press('[name=token]', 'Enter')
    }
    await send('mh_wrong')
    await page.waitForSelector('[role=alert]')
    expect(await page.inputValue('[name=token]')).toBe('')
    await send(service.token)
    await page.waitForURL('**/docs')
    await page.goto(`${service.url}/session`)
    await page.click('form:has([name=form_token]) button')
    await page.waitForSelector('[name=token]')
    expect(await page.context().cookies()).toEqual([])
    expect(complaints()).toEqual([])
  })

  test('the player pauses off screen, and under reduced motion until the user plays it', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    const blog = `<div style="height: 3000px"></div><iframe src="${service.url}/embed/${id}" width="160" height="120" allow="autoplay"></iframe>`
    await page.goto(await startBlog(blog))
    const video = page.frameLocator('iframe').locator('video.moving')
    const isPaused = () => video.evaluate((each) => (each as unknown as { paused: boolean }).paused)
    await page.locator('iframe').scrollIntoViewIfNeeded()
    await playing(page, { frame: 'iframe' })
    await page.evaluate('scrollTo(0, 0)')
    await expect.poll(isPaused).toBe(true)
    await page.locator('iframe').scrollIntoViewIfNeeded()
    await expect.poll(isPaused).toBe(false)

    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.goto(`${service.url}/embed/${id}`)
    expect(await page.locator('video.moving').isVisible()).toBe(false)
    expect(await page.locator('video.still').isVisible()).toBe(true)
  })

  test.each([
    [1280, 720],
    [240, 180],
    [160, 120],
  ])('a sensitive clip is shown and hidden again, on its page and in its player of %i x %i', async (width, height) => {
    const sensitive = idIn(await service.upload(await clip('plain.gif'), [['nsfw', 'true']]))
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.setViewportSize({ width, height })
    for (const path of ['gif', 'embed']) {
      await page.goto(`${service.url}/${path}/${sensitive}`)
      await page.getByText('Show it').click()
      await playing(page)
      // Fails if another element is at its middle.
      await page.getByText('Hide', { exact: true }).click()
      expect([path, await page.isVisible('video.moving'), await page.isVisible('text=Show it')]).toEqual([
        path,
        false,
        true,
      ])
    }
  })

  test('a user pastes a token, drops a file and gets links to a clip that plays, without a mouse', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/`)
    const focused = () => page.evaluate('document.activeElement.id')
    await page.locator('#token').press('Enter')
    expect([await page.textContent('#token-error'), await focused()]).toEqual(['Paste your token here.', 'token'])
    await page.fill('#token', 'mh_wrong')
    await page.setInputFiles('#file', { name: 'text.mp4', mimeType: 'video/mp4', buffer: Buffer.from('no video') })
    await page.locator('#token').press('Enter')
    await page.waitForSelector('#token-error:text("unknown")')
    expect(await focused()).toBe('token')
    await page.fill('#token', service.token)
    await page.locator('#token').press('Enter')
    await page.waitForSelector('#file-error:text("Only GIF")')
    expect(await focused()).toBe('file')

    await page.setInputFiles('#file', await clip('silence.mp4'))
    await page.locator('#more summary').press('Enter')
    await page.fill('#title', 'Grüße 🎈')
    await page.fill('#tags', 'one, two')
    await page.locator('#nsfw').press('Space')
    await page.selectOption('#visibility', 'private')
    await page.selectOption('#expires_in', '7d')
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#done-title:focus')
    const link = (await page.getAttribute('#links a', 'href')) as string
    expect(await page.inputValue('#embed')).toContain('title="Grüße 🎈"')
    await expect
      .poll(() => page.$eval('#preview', (video) => (video as unknown as { currentTime: number }).currentTime))
      .toBeGreaterThan(0.2)
    expect(await page.isVisible('#ends')).toBe(true)
    const details = await service.get(link.replace('/gif/', '/media/'), { token: service.token })
    const texts = { title: 'Grüße 🎈', tags: ['one', 'two'], nsfw: true }
    expect(details.body.success).toMatchObject({ ...texts, visibility: 'private' })
    const { created_at: created, expires_at: ends } = details.body.success
    expect(Date.parse(ends) - Date.parse(created)).toBe(7 * 86_400_000)
    expect(await page.evaluate('[sessionStorage.length, localStorage.length, location.href]')).toEqual([
      0,
      0,
      `${service.url}/`,
    ])

    await page.locator('#another').press('Enter')
    expect(await focused()).toBe('file')
    await page.fill('#source', `${service.url}/f/${id}.gif`)
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#source:focus[aria-invalid=true]')
    const bytes = await readFile(await clip('plain.gif'))
    const far = createFarServer((_request, response) => response.end(bytes)).listen(0, '127.0.0.1')
    await once(far, 'listening')
    onTestFinished(() => void far.close())
    await page.fill('#source', `http://127.0.0.1:${(far.address() as AddressInfo).port}/a.gif`)
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#done-title:focus')
    expect(await page.textContent('#facts')).toBe('160 × 1201.5 s')
    expect(complaints()).toEqual([])
  })

  test('a part of a file is chosen in its preview, by keyboard alone, and is what the clip shows', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    // Black for 20 s, then white for 16.
    const long = await clipOf('black-then-white.mp4', [
      ...['-f', 'lavfi', '-i', "nullsrc=s=64x48:r=10:d=36,geq=lum='if(lt(N,200),20,230)':cb=128:cr=128"],
      ...['-c:v', 'libx264', '-g', '10', '-pix_fmt', 'yuv420p', '-movflags', '+faststart'],
    ])
    await page.setInputFiles('#file', long)
    await page.waitForSelector('#trim[open] #trim-preview:not([hidden])')
    expect([await page.inputValue('#start'), await page.inputValue('#end')]).toEqual(['', '30'])
    expect(await page.textContent('#part')).toBe('The clip lasts 30 seconds.')
    await page.fill('#start', '0:19')
    await page.fill('#end', '23.5')
    await page.locator('#end').press('Tab')
    expect(await page.textContent('#part')).toBe('The clip lasts 4.5 seconds.')
    const seconds = (id: string) => page.$eval(id, (input) => Number((input as unknown as { value: string }).value))
    expect([await seconds('#from'), await seconds('#to')]).toEqual([19, 23.5])
    // The shown frame is that of the slider.
    await page.locator('#from').press('ArrowRight')
    const shown = () =>
      page.$eval('#source-video', (video) => (video as unknown as { currentTime: number }).currentTime)
    await expect.poll(shown).toBeCloseTo(19.01, 2)
    expect(await page.inputValue('#start')).toBe('19.01')
    await page.fill('#start', '21')
    await page.locator('#start').press('Tab')
    await expect.poll(shown).toBeCloseTo(21, 2)
    // The part plays in a loop: it comes back to its beginning, and never shows the black before it.
    await page.$eval('#source-video', (video) => (video as unknown as { play(): Promise<void> }).play())
    const times: number[] = []
    const isLooping = async () => {
      times.push(await shown())
      return times.some((time, at) => time < (times[at - 1] ?? 0))
    }
    await expect.poll(isLooping, { interval: 50 }).toBe(true)
    expect(Math.min(...times)).toBeGreaterThan(20.9)
    expect(Math.max(...times)).toBeLessThan(23.8)
    // An address beside the file, typed and deleted, leaves the part as it was.
    await page.fill('#source', 'https://example.com/cat.gif')
    await page.waitForSelector('#trim', { state: 'hidden' })
    await page.fill('#source', '')
    await page.waitForSelector('#trim-preview:not([hidden])')
    expect([await page.inputValue('#start'), await page.inputValue('#end')]).toEqual(['21', '23.5'])
    expect([await seconds('#from'), await seconds('#to')]).toEqual([21, 23.5])

    const box = async () => (await page.locator('#source-video').boundingBox()) ?? { width: 0, height: 1 }
    const shape = async () => (await box()).width / (await box()).height
    expect(await shape()).toBeCloseTo(4 / 3, 1)
    await page.selectOption('#crop', '1:1')
    expect(await shape()).toBeCloseTo(1, 1)
    await page.selectOption('#speed', '2')
    expect(
      await page.$eval('#source-video', (video) => (video as unknown as { playbackRate: number }).playbackRate),
    ).toBe(2)
    expect(await page.textContent('#part')).toBe('The clip lasts 1.25 seconds.')
    await page.locator('#mute').press('Space')
    await page.fill('#caption', 'Hi 🎉')
    await page.selectOption('#caption_position', 'top')
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#caption:focus[aria-invalid=true]')
    expect(await page.textContent('#caption-error')).toContain('U+1F389')
    await page.fill('#caption', 'Hi')
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#done-title:focus')
    expect(await page.textContent('#facts')).toBe('48 × 481.25 s')
    const link = (await page.getAttribute('#links a', 'href')) as string
    const details = await service.get(link.replace('/gif/', '/media/'), { token: service.token })
    expect(details.body.success.edit).toEqual({
      ...{ start: 21, duration: 2.5, crop: '8,0,48,48', speed: 2 },
      ...{ caption: 'Hi', caption_position: 'top' },
    })
    const poster = await service.get(`${link.replace('/gif/', '/f/')}.jpg`)
    expect((await sharp(poster.bytes).stats()).channels[0]?.mean).toBeGreaterThan(190)
    expect(complaints()).toEqual([])
  })

  test('another clip begins with the form as it was, and with the same token', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    await page.check('#keep')
    // The sliders are set when a video is shown.
    const fields = () =>
      page.$$eval('#form :is(input:not([type=range]), select)', (all) =>
        all.map((each) => {
          const { id, value, checked, disabled } = each as unknown as Record<string, unknown>
          return { id, value, checked, disabled }
        }),
      )
    const before = await fields()
    await page.setInputFiles('#file', await clip('plain.gif'))
    for (const id of ['trim', 'more']) await page.click(`#${id} summary`)
    const texts = {
      ...{ start: '0.1', end: '1.3', caption: 'Hi', poster_at: '0.2', title: 'First', tags: 'one' },
      ...{ attribution_site: 'reddit', attribution_user: 'ada', attribution_url: 'https://example.com/1' },
    }
    const choices = { crop: '1:1', speed: '2', caption_position: 'top', visibility: 'unlisted', expires_in: '7d' }
    for (const [id, text] of Object.entries(texts)) await page.fill(`#${id}`, text)
    for (const [id, choice] of Object.entries(choices)) await page.selectOption(`#${id}`, choice)
    for (const id of ['mute', 'nsfw', 'sliding']) await page.check(`#${id}`)
    await page.click('#send')
    await page.waitForSelector('#done-title:focus')
    const link = (await page.getAttribute('#links a', 'href')) as string
    const { body } = await service.get(link.replace('/gif/', '/media/'), { token: service.token })
    expect(body.success).toMatchObject({ title: 'First', visibility: 'unlisted', sliding: true })
    await page.click('#another')
    expect(await fields()).toEqual(before)
    expect(await page.evaluate('sessionStorage.length')).toBe(1)
  })

  test('a visit can put off only a deletion that is planned, and a refusal of it is shown at its box', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    await page.setInputFiles('#file', await clip('plain.gif'))
    await page.click('#more summary')
    expect(await page.isDisabled('#sliding')).toBe(true)
    await page.selectOption('#expires_in', '1d')
    await page.check('#sliding')
    await page.selectOption('#expires_in', '')
    await page.click('#send')
    await page.waitForSelector('#done-title:focus')
    await page.click('#another')

    const error = { code: 'invalid_field', message: 'Not accepted: sliding needs a token.', param: 'sliding' }
    await page.route('**/tus', (route) => route.fulfill({ status: 422, json: { error } }))
    await page.setInputFiles('#file', await clip('plain.gif'))
    await page.selectOption('#expires_in', '1d')
    await page.check('#sliding')
    await page.click('#send')
    await page.waitForSelector('#sliding:focus[aria-invalid=true]')
    expect(await page.textContent('#sliding-error')).toContain('needs a token')
    expect(await page.isVisible('#file-error')).toBe(false)
  })

  test('an unticked box sends nothing, so the site decides whether an import is safe for work', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    const bytes = gif(31, 20, [{ delay: 10 }, { delay: 10, color: 1 }])
    const watch = '<meta name="rating" content="adult"><meta property="og:video" content="/a.gif">'
    const far = createFarServer(({ url }, response) => {
      if (url === '/a.gif') response.end(bytes)
      else response.setHeader('content-type', 'text/html').end(`<!doctype html><head>${watch}</head>`)
    }).listen(0, '127.0.0.1')
    await once(far, 'listening')
    onTestFinished(() => void far.close())
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    await page.fill('#source', `http://127.0.0.1:${(far.address() as AddressInfo).port}/watch`)
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#done-title:focus')
    const link = (await page.getAttribute('#links a', 'href')) as string
    const details = await service.get(link.replace('/gif/', '/media/'), { token: service.token })
    expect(details.body.success.nsfw).toBe(true)
  })

  test('a clip that is too long is reported with its length if that is known, and a source that is too long for a part', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    let details: object
    await page.route('**/media/import', (route) =>
      route.fulfill({ status: 422, json: { error: { code: 'duration_exceeded', message: 'Too long.', details } } }),
    )
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    await page.fill('#source', 'https://example.com/watch')
    await page.click('#trim summary')
    const advice = 'Choose a part of it under Trim.'
    for (const [told, start, text] of [
      [{ limit: 30, actual: 41.2 }, '', `The clip is 41.2 seconds long; 30 are allowed. ${advice}`],
      // The refusal of yt-dlp.
      [{ limit: 30 }, '', `The clip is longer than 30 seconds. ${advice}`],
      // Twice the speed permits twice the length.
      [{ limit: 60, actual: 70 }, '', `The clip is 70 seconds long; 60 are allowed. ${advice}`],
      [{ limit: 30, actual: 35 }, '10', `The clip is 35 seconds long; 30 are allowed. ${advice}`],
      [{ limit: 600, actual: 700 }, '10', 'The source is 700 seconds long; 600 are allowed.'],
    ] as const) {
      details = told
      await page.fill('#start', start)
      await page.locator('#send').press('Enter')
      await page.waitForSelector(`#source-error:text-is("${text}")`)
    }
  })

  test('a token that may not read waits for its clip even if files are redirected to a CDN', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.route(/\/f\/\w+\.gif$/, async (route) => {
      const response = await route.fetch()
      if (response.status() !== 200) return route.fulfill({ response })
      await route.fulfill({ status: 302, headers: { location: 'http://localhost:1/a.gif' } })
    })
    await page.goto(`${service.url}/`)
    await page.fill('#token', (await service.newToken({ scopes: ['write'] })).token)
    const buffer = gif(30, 20, [{ delay: 10 }, { delay: 10, color: 1 }])
    await page.setInputFiles('#file', { name: 'a.gif', mimeType: 'image/gif', buffer })
    await page.locator('#send').press('Enter')
    await page.waitForSelector('#done-title:focus')
    expect(await page.textContent('#facts')).toContain('30 × 20')
  })

  test('a token that may not read gets the links to its private clip', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/`)
    await page.fill('#token', (await service.newToken({ scopes: ['write'] })).token)
    const buffer = gif(32, 20, [{ delay: 10 }, { delay: 10, color: 1 }])
    await page.setInputFiles('#file', { name: 'a.gif', mimeType: 'image/gif', buffer })
    await page.click('#more summary')
    await page.selectOption('#visibility', 'private')
    await page.click('#send')
    await page.waitForSelector('#done-title:focus')
    expect(await page.isVisible('#ends')).toBe(true)
    const link = (await page.getAttribute('#links a', 'href')) as string
    expect((await page.goto(link))?.status()).toBe(200)
  })

  test('a clip that is hidden while it is made ends the wait', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.route('**/media/*/events', async (route) => {
      const [, hidden] = /media\/(\w+)\/events/.exec(route.request().url()) ?? []
      await service.deps.pool.query('update clips set hidden_at = now() where id = $1', [hidden])
      await route.continue()
    })
    await page.goto(`${service.url}/`)
    await page.fill('#token', service.token)
    const buffer = gif(34, 20, [{ delay: 10 }, { delay: 10, color: 1 }])
    await page.setInputFiles('#file', { name: 'a.gif', mimeType: 'image/gif', buffer })
    await page.click('#send')
    await expect.poll(() => page.textContent('main')).toContain('The operator has hidden this clip.')
  })

  test('without scripts the page at / names another way', async () => {
    const { page } = await openPage({ javaScriptEnabled: false })
    await page.goto(`${service.url}/`)
    expect(await page.isVisible('#add')).toBe(false)
    expect(await page.textContent('main')).toContain(
      `curl -F file=@clip.mp4 -F title=Hello -H 'Token: mh_…' ${service.url}/media/upload`,
    )
  })

  test('the colours of the poster are there before it, and the AV1 copy plays once it is made', async ({ skip }) => {
    if (!tools.ffmpeg.av1Encoder) skip('this ffmpeg has no libsvtav1')
    const isMade = async () => (await service.get(`/f/${id}.av1.mp4`)).status
    await expect.poll(isMade, { interval: 100 }).toBe(200)
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
  })

  test('the embed of the result plays in a page of another site, when it is seen again too', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    const { body } = await service.get(`/media/${id}`, { token: service.token })
    const blog = await startBlog(`<h1>A blog</h1>${body.success.embed}`)
    // The headers of a 304 count from the view after it.
    for (const isAskedAgain of [false, true, true]) {
      const player = page.waitForRequest(`${service.url}/embed/${id}`)
      await page.goto(blog)
      await playing(page, { frame: 'iframe' })
      expect('if-none-match' in (await (await player).allHeaders())).toBe(isAskedAgain)
    }
    expect(complaints()).toEqual([])
  })

  test.each([
    ['a narrow column', 300, 160],
    ['a wide one', 1200, 160],
    ['a narrow column, a clip larger than a page', 300, 2560],
    ['a wide one, a clip larger than a page', 1200, 2560],
  ])('the embed fits %s', async (_, column, width) => {
    const shownId = width === 160 ? id : idIn(await service.upload(await clip('large.mp4')))
    const { body } = await service.get(`/media/${shownId}`, { token: service.token })
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.goto(await startBlog(`<div style="width: ${column}px; overflow: auto">${body.success.embed}</div>`))
    const box = await page.locator('iframe').boundingBox()
    const shownWidth = Math.min(column, width, 960)
    expect(box?.width).toBeCloseTo(shownWidth, 0)
    expect(box?.height).toBeCloseTo((shownWidth * Number(body.success.meta.height)) / width, 0)
    const overflow = page.locator('div').evaluate((each) => {
      const { scrollWidth, clientWidth } = each as unknown as Record<string, number>
      return [scrollWidth, clientWidth]
    })
    expect(await overflow).toEqual([column, column])
  })

  test('the embed plays in the page of an application, which is no http', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    const { body } = await service.get(`/media/${id}`, { token: service.token })
    const folder = await mkdtemp(join(tmpdir(), 'application-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'index.html'), `<!doctype html>${body.success.embed}`)
    await page.goto(`file://${folder}/index.html`)
    await playing(page, { frame: 'iframe' })
    expect(complaints()).toEqual([])
  })

  test('without a mouse the page copies its link and its embed code, and saves a file under its title', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.url })
    const titled = idIn(await service.upload(await clip('page.mp4'), [['title', 'Grüße: 1/2']]))
    await page.goto(`${service.url}/gif/${titled}`)
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    await page.getByRole('button', { name: 'Copy link' }).press('Enter')
    await expect.poll(copied).toBe(`${service.url}/gif/${titled}`)
    await page.getByRole('button', { name: 'Copy embed code' }).press('Space')
    await expect.poll(copied).toContain(`<iframe src="${service.url}/embed/${titled}"`)
    expect(complaints()).toEqual([])

    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Save as GIF' }).press('Enter')
    expect((await download).suggestedFilename()).toBe('Grüße 1 2.gif')
  })

  test('without scripts there are no dead buttons', async () => {
    const { page } = await openPage({ javaScriptEnabled: false })
    await page.goto(`${service.url}/gif/${id}`)
    expect(await page.getByRole('link', { name: 'Save as GIF' }).isVisible()).toBe(true)
    expect(await page.getByRole('button').count()).toBe(0)
  })

  test('no page is wider than a phone or complains, in dark and in light', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.setViewportSize({ width: 390, height: 844 })
    for (const path of ['', `gif/${id}`, 'docs/errors', 'docs']) {
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.goto(`${service.url}/${path}`)
      if (path === 'docs') await page.waitForSelector('.opblock-summary')
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme })
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 390])
        // The script of /docs hears of the change with the next frame.
        const shown = async () => {
          const background = await page.evaluate('getComputedStyle(document.body).backgroundColor')
          const [red = 0] = String(background).match(/\d+/g) ?? []
          return [path, Number(red) > 127 ? 'light' : 'dark']
        }
        await expect.poll(shown).toEqual([path, colorScheme])
      }
    }
    expect(complaints()).toEqual([])
  })

  test('a clip is never larger than its files, and its card is no wider than it needs', async () => {
    const { page } = await openPage({ javaScriptEnabled: true })
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(`${service.url}/gif/${id}`)
    expect((await page.locator('video.moving').boundingBox())?.width).toBe(160)
    expect((await page.locator('article').boundingBox())?.width).toBe(512)
  })

  test('operations can be tried in /docs: a form sends only the fields that were filled in', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    await page.goto(`${service.url}/docs`)
    await page.click('.authorize')
    await page.fill('input[type=text]', service.token)
    await page.press('input[type=text]', 'Enter')
    await page.click('.modal-ux .btn-done')
    const operation = page.locator('.opblock', { has: page.locator('[data-path="/media/upload"]') })
    await operation.locator('.opblock-summary-control').press('Enter')
    await operation.locator('.try-out__btn').click()
    await operation.locator('input[type=file]').setInputFiles(await clip('plain.gif'))
    await operation.locator('.execute').click()
    await expect
      .poll(() => operation.locator('.live-responses-table tbody .response-col_status').first().textContent())
      .toContain('201')
    expect(complaints()).toEqual([])
  })

  test('the page looks and plays the same on its second view', async () => {
    const { page, complaints } = await openPage({ javaScriptEnabled: true })
    const views: Buffer[] = []
    for (const isAskedAgain of [false, true]) {
      const answer = await page.goto(`${service.url}/gif/${id}`)
      expect('if-none-match' in ((await answer?.request().allHeaders()) ?? {})).toBe(isAskedAgain)
      await playing(page)
      views.push(await page.screenshot({ mask: [page.locator('video')] }))
    }
    expect(views[1]?.equals(views[0] as Buffer)).toBe(true)
    expect(complaints()).toEqual([])
  })
})

interface Browserish {
  getComputedStyle(element: unknown): { backgroundImage: string }
}

/** The address of a page of another site. */
async function startBlog(body: string): Promise<string> {
  const blog = createFarServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end(body)
  }).listen(0, '127.0.0.1')
  await once(blog, 'listening')
  onTestFinished(() => void blog.close())
  return `http://localhost:${(blog.address() as AddressInfo).port}/`
}

/** Time passes in the clip. `evaluate` works without scripts of the page too. */
async function playing(page: Page, { frame, video = 'video.moving' }: { frame?: string; video?: string } = {}) {
  const root = frame ? page.frameLocator(frame) : page
  const state = () =>
    root.locator(video).evaluate((each) => {
      const { currentTime, currentSrc, readyState, networkState, paused } = each as unknown as Record<string, unknown>
      return { currentTime, currentSrc, readyState, networkState, paused }
    })
  const time = async () => (await state()).currentTime
  await expect
    .poll(time)
    .toBeGreaterThan(0.2)
    .catch(async (error: Error) => {
      error.message += `; the video is ${JSON.stringify(await state())}`
      throw error
    })
}
