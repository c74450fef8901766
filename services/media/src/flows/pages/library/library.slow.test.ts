// The library in a browser: keyboard, selection, live states, two tabs, and faults that only a browser shows.
import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { addClips, HOSTILE_TITLE, signedIn } from './testing/library-clips.ts'

describe('the library', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let base: string
  let ids: Awaited<ReturnType<typeof addClips>>
  let token: string
  beforeAll(async () => {
    const port = await findFreePort()
    base = `http://127.0.0.1:${port}`
    const settings = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([
      startTestService({ ...settings, MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '100000/1m' }),
      launchBrowser(),
    ])
    ;({ token } = await service.newToken())
    ids = await addClips(service, token)
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  type Options = Parameters<Browser['newContext']>[0]
  async function open(path: string, options: Options = {}): Promise<Page> {
    const { cookie = '' } = await signedIn(service, token)
    const [name = '', value = ''] = cookie.split('=')
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
    await context.addCookies([{ name, value, url: base, httpOnly: true, sameSite: 'Strict' }])
    const page = await context.newPage()
    await page.goto(base + path)
    if (options.javaScriptEnabled !== false) await page.waitForSelector('body[data-started]')
    return page
  }
  const card = (page: Page, id: string) => page.locator(`[data-id="${id}"]`)

  test('and the page of a clip have no fault for axe, light, dark and German, and fit into 320 pixels', async () => {
    const looks: Options[] = [
      { colorScheme: 'light', viewport: { width: 320, height: 700 } },
      { colorScheme: 'dark', locale: 'de' },
    ]
    for (const look of looks) {
      const page = await open('/library?q=&state=', look)
      for (const path of ['/library?nsfw=false', `/library/${ids.ready}`, `/library/${ids.private}`]) {
        await page.goto(base + path)
        await page.waitForSelector('body[data-started]')
        if (path === '/library?nsfw=false') await card(page, ids.ready).locator('input').check()
        expect([path, await accessibilityFaults(page)]).toEqual([path, []])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
          look?.viewport?.width ?? 1280,
        )
      }
      await page.context().close()
    }
  })

  test('is used by the keyboard alone: cards, choice of several, their deletion after a question', async () => {
    const mine = await addClips(service, token)
    const page = await open('/library?q=cat')
    await card(page, mine.ready).locator('a').focus()
    await page.keyboard.press('x')
    expect(await page.getByText('1 chosen').isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    expect(await page.getByText('1 chosen').isVisible()).toBe(false)
    await card(page, mine.ready).locator('input').focus()
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Delete' }).focus()
    await page.keyboard.press('Enter')
    // The focus is on the way back.
    await page.keyboard.press('Enter')
    expect(await card(page, mine.ready).isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Delete' }).focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await card(page, mine.ready).waitFor({ state: 'detached' })
    expect((await service.get(`/gif/${mine.ready}`)).status).toBe(410)
  })

  test('changes several clips at once, chosen by a range, and says which could not be changed', async () => {
    const page = await open('/library?sort=title')
    const boxes = page.locator('.clip input')
    const count = await boxes.count()
    await boxes.first().check()
    await boxes.last().click({ modifiers: ['Shift'] })
    expect(await page.getByText(`${count} chosen`).isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Tags' }).click()
    await page.getByRole('dialog').getByLabel('Tags').fill('holiday, sea')
    const add = page.getByRole('dialog').getByRole('button', { name: 'Add' })
    await page.route('**/media/bulk', (route) => route.abort(), { times: 1 })
    await add.click()
    await page.getByRole('dialog').getByText('cannot be reached').waitFor()
    expect(await page.getByRole('dialog').getByLabel('Tags').inputValue()).toBe('holiday, sea')
    await page.route('**/media/bulk', async (route) => {
      await service.call('DELETE', `/media/${ids.failed}`, { headers: { token } })
      await route.continue()
    })
    await add.click()
    await page.getByRole('dialog').getByText('This clip was deleted.').waitFor()
    expect(await page.getByRole('dialog', { name: `1 of ${count} clips could not be changed` }).isVisible()).toBe(true)
    await page.goto(`${base}/library?tag=holiday`)
    expect(await page.locator('.clip').count()).toBe(count - 1)
    expect(await page.locator('.tags a[aria-current]').textContent()).toContain('holiday')
    await page.waitForSelector('body[data-started]')
    await boxes.first().check()
    await page.getByRole('button', { name: 'Choose all that match' }).click()
    await page.getByText(`All ${count - 1} that match are chosen.`).waitFor()
    await page.getByRole('button', { name: 'Download' }).click()
    await page.getByText('One of these clips has no file').waitFor()
    expect(await page.locator('#done .notice').count()).toBe(0)
    await boxes.first().focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Space')
    expect(await boxes.last().isChecked()).toBe(false)
    expect(await page.locator('#bar strong').textContent()).toBe(`${count - 2} chosen`)
  })

  test('follows states without a reload, from the rendering on, and when the stream was refused', async () => {
    const page = await open('/library')
    // An administrator would else follow the clips of all tokens.
    const { pool } = service.deps
    let streams = 0
    await page.route(/media\/events/, async (route) => {
      if (streams++ === 0) return route.fulfill({ status: 503 })
      const source = '(select source_id from clips where id = $1)'
      await pool.query(`update sources set state = 'ready', progress = 1 where id = ${source}`, [ids.making])
      await route.continue()
    })
    const [{ rows }, stream] = await Promise.all([
      pool.query('select token_id from clips where id = $1', [ids.waiting]),
      page.waitForRequest(/media\/events/),
      page.reload(),
    ])
    expect(stream.url()).toBe(`${base}/media/events?token=${rows[0].token_id}`)
    await page.waitForFunction(`document.querySelector('[data-id="${ids.waiting}"][data-state="processing"]')`)
    await page.getByText('The connection for live states is lost').waitFor()
    await card(page, ids.expiring).locator('input').check()
    await page.waitForSelector(`body[data-live] [data-id="${ids.making}"][data-state="ready"]`)
    await pool.query(`update clips set title = 'Renamed elsewhere' where id = $1`, [ids.unlisted])
    await card(page, ids.unlisted).getByText('Renamed elsewhere').waitFor()
    await service.call('DELETE', `/media/${ids.expiring}`, { headers: { token } })
    await card(page, ids.expiring).waitFor({ state: 'detached' })
    expect(await page.locator('#bar').isVisible()).toBe(false)
  })

  test('appends pages, and its address follows the reader down and up', async () => {
    await service.deps.pool.query(
      `insert into clips (id, token_id, source_id, title, source_kind, created_at, visibility)
       select 'p' || lpad(n::text, 7, '0'), token_id, source_id, 'Page by page', 'upload', created_at, 'public'
       from clips, generate_series(1, 45) n where id = $1`,
      [ids.ready],
    )
    const page = await open('/library?q=page')
    await page.keyboard.press('End')
    await page.waitForURL(/cursor=/)
    expect(await page.locator('.clip').count()).toBe(45)
    await page.keyboard.press('Home')
    await page.waitForURL(`${base}/library?q=page`)
  })

  test('plays a clip under the pointer, one at a time, and none where motion is unwanted', async () => {
    const page = await open('/library')
    await card(page, ids.ready).locator('a').hover()
    await card(page, ids.ready).locator('video').waitFor()
    // A focus that a key has moved: one of a finger or a mouse plays nothing.
    await page.keyboard.press('Tab')
    await card(page, ids.hostile).locator('a').focus()
    await card(page, ids.hostile).locator('video').waitFor()
    expect(await page.locator('video').count()).toBe(1)
    const quiet = await open('/library', { reducedMotion: 'reduce' })
    await quiet.clock.install()
    await quiet.evaluate('plays = 0, HTMLMediaElement.prototype.play = async () => void plays++')
    await card(quiet, ids.ready).locator('a').focus()
    await quiet.clock.runFor(1_000)
    expect(await quiet.evaluate('plays')).toBe(0)
  })

  test('without script, pages, filters, deletion and sign-out work', async () => {
    const { ready } = await addClips(service, token)
    const page = await open('/library', { javaScriptEnabled: false })
    await page.getByRole('searchbox').fill('cat')
    await page.getByRole('button', { name: 'Search' }).click()
    await card(page, ready).locator('input').check()
    await page.getByRole('button', { name: 'Delete the chosen clips' }).click()
    await page.getByRole('button', { name: 'Delete for good' }).click()
    expect((await service.get(`/gif/${ready}`)).status).toBe(410)
    await page.getByRole('button', { name: 'Sign out' }).click()
    expect(new URL(page.url()).pathname).toBe('/session')
    await page.goto(`${base}/library`)
    expect(new URL(page.url()).pathname).toBe('/session')
  })

  test('a clip that two tabs change shows both, and the reader chooses', async () => {
    const page = await open(`/library/${ids.ready}`)
    const title = page.getByRole('textbox', { name: 'Title' })
    await title.fill('Mine')
    await title.press('Tab')
    await page.locator('#said-title', { hasText: 'Saved' }).waitFor()
    const change = { method: 'PATCH', headers: { token, 'content-type': 'application/json' } }
    const elsewhere = (changes: object) =>
      service.call('PATCH', `/media/${ids.ready}`, { ...change, body: JSON.stringify(changes) })
    const titleOf = async () => (await service.get(`/media/${ids.ready}`, { token })).body.success.title
    await elsewhere({ title: 'Theirs', tags: ['theirs'] })
    await page.route(`**/media/${ids.ready}`, (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    )
    await title.fill('Not compared')
    await title.press('Tab')
    await page.locator('#said-title', { hasText: 'cannot be reached' }).waitFor()
    await page.unroute(`**/media/${ids.ready}`)
    await title.fill('Mine again')
    await title.press('Tab')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Mine again').waitFor()
    expect(await dialog.getByText('Theirs', { exact: true }).count()).toBeGreaterThan(0)
    await dialog.getByRole('button', { name: 'Keep yours' }).click()
    await page.locator('#said-title', { hasText: 'Saved' }).waitFor()
    expect(await titleOf()).toBe('Mine again')
    expect(await page.getByRole('textbox', { name: 'Tags' }).inputValue()).toBe('theirs')
    // Another field: nothing is to choose.
    await elsewhere({ nsfw: true })
    await title.fill('Mine at last')
    await title.press('Tab')
    await expect.poll(titleOf).toBe('Mine at last')
    expect(await page.getByRole('checkbox', { name: 'Sensitive' }).isChecked()).toBe(true)
    await elsewhere({ expires_in: '1d', nsfw: false })
    await page.getByRole('combobox', { name: 'Lifetime' }).selectOption('7d')
    const rows = dialog.getByRole('row')
    await rows.nth(1).waitFor()
    expect((await rows.allTextContents()).slice(1)).toEqual([
      expect.stringMatching(/^Lifetime\s*seven days from now\s*\w+ \d+, \d{4}, .* UTC$/),
    ])
  })

  test('a new poster is shown when it is made', async () => {
    const page = await open(`/library/${ids.hostile}`)
    await page.getByText('Poster', { exact: true }).click()
    await page.getByRole('button', { name: 'Use this picture' }).click()
    await page.getByText('The poster is made anew').waitFor()
    await service.deps.pool.query(
      `update clips set poster_wanted = null, poster_request = null, poster_state = null, poster_number = 1 where id = $1`,
      [ids.hostile],
    )
    await page.getByText('The new poster is made').waitFor()
    expect(await page.locator('#poster img').getAttribute('src')).toContain(ids.hostile)
  })

  test('an ended session and a lost connection lose no typed text', async () => {
    const page = await open(`/library/${ids.ready}`)
    const title = page.getByRole('textbox', { name: 'Title' })
    await page.context().setOffline(true)
    await title.fill('Typed without a connection')
    await title.press('Tab')
    await page.locator('#said-title', { hasText: 'cannot be reached' }).waitFor()
    expect(await title.inputValue()).toBe('Typed without a connection')
    await page.context().setOffline(false)
    await service.deps.pool.query('delete from browser_sessions')
    await title.fill('Typed after the end')
    await title.press('Tab')
    await page.locator('#said-title', { hasText: 'Your session has ended' }).waitFor()
    expect(await title.inputValue()).toBe('Typed after the end')
  })

  test('albums are made, ordered by the keyboard, linked and deleted, without a fault for axe', async () => {
    const size = { width: 320, height: 700 }
    const page = await open('/library', { viewport: size, colorScheme: 'dark' })
    const checkLook = async () => {
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(size.width)
    }
    await page.getByRole('link', { name: 'Albums' }).click()
    await page.getByRole('textbox', { name: 'Title' }).fill(HOSTILE_TITLE)
    await checkLook()
    await page.getByRole('button', { name: 'Make the album' }).click()
    await page.waitForSelector('body[data-started]')
    const id = new URL(page.url()).pathname.split('/').at(-1)
    const body = JSON.stringify({ ids: [ids.unlisted, ids.private, ids.sensitive] })
    await service.call('POST', `/albums/${id}/items`, { headers: { token, 'content-type': 'application/json' }, body })
    const order = () => page.locator('#items > li').evaluateAll((items) => items.map((item) => item.dataset.id))
    const press = async (act: string, clip: string) => {
      await card(page, clip).getByRole('button', { name: act }).focus()
      await page.keyboard.press('Enter')
    }
    await page.reload()
    await page.waitForSelector('body[data-started]')
    await checkLook()
    await press('First', ids.sensitive)
    await page.getByText('Clip 1 of 3').waitFor()
    await press('Down', ids.sensitive)
    await page.getByText('Clip 2 of 3').waitFor()
    // The focus stays on the button.
    await page.keyboard.press('Enter')
    await page.getByText('Clip 3 of 3').waitFor()
    await press('Up', ids.private)
    await page.getByText('Clip 1 of 3').waitFor()
    await press('Take out', ids.unlisted)
    await card(page, ids.unlisted).waitFor({ state: 'detached' })
    expect(await order()).toEqual([ids.private, ids.sensitive])
    // Changes of order by the same page refuse no field of it.
    await page.getByLabel('Description').fill('Of the sea')
    await page.getByLabel('Description').press('Tab')
    await page.locator('#said', { hasText: 'Saved' }).waitFor()
    await page.getByLabel('Visibility').selectOption('private')
    await page.waitForSelector('body[data-started] #links')
    await page.getByRole('button', { name: 'Make a link' }).click()
    const link = page.locator('#link-0')
    expect((await service.get((await link.inputValue()).replace(base, ''))).status).toBe(200)
    await checkLook()
    expect(await order()).toEqual([ids.private, ids.sensitive])
    await page.getByRole('button', { name: 'End all links' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End all links' }).click()
    await link.waitFor({ state: 'detached' })
    const change = { headers: { token, 'content-type': 'application/json' }, body: JSON.stringify({ title: 'Theirs' }) }
    await service.call('PATCH', `/albums/${id}`, change)
    await page.getByLabel('Title').fill('Mine')
    await page.getByLabel('Title').press('Tab')
    await page.locator('#said', { hasText: 'Changed elsewhere to "Theirs"' }).waitFor()
    expect(await page.getByLabel('Title').inputValue()).toBe('Mine')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Mine' }).waitFor()
    await page.getByRole('link', { name: 'Delete this album' }).click()
    await checkLook()
    await page.getByRole('button', { name: 'Delete the album' }).click()
    await page.getByText('No albums yet').waitFor()
    expect((await service.get(`/albums/${id}`, { token })).status).toBe(404)
  })
})
