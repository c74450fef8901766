import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from '../../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { PAGES } from './testing/administrator.ts'

describe('pages of administrators', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let token: string
  let tokenId: string
  const clips: string[] = []
  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const settings = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([
      startTestService({ ...settings, MEDIA_WORKERS_ENABLED: 'false' }),
      launchBrowser(),
    ])
    ;({ token, id: tokenId } = await service.newToken({ scopes: ['admin'] }))
    const { pool } = service.deps
    for (const title of ['A cat jumps', 'A dog sleeps', 'שלום '.repeat(40)]) {
      const clip = idIn(await service.readyAlike(gif(320 + clips.length, 180, [{ delay: 10 }]), [['title', title]]))
      clips.push(clip)
      const body = new URLSearchParams({ reason: 'spam', text: 'x'.repeat(300), email: 'eve@example.com' })
      await service.call('POST', `/gif/${clip}/report`, { body })
      service.clock.advance({ seconds: 1 })
    }
    await pool.query(
      `insert into media_queue.job (name, source_name, data, source_output, source_retry_count)
        values ('extras.dead', 'extras', '{}', '{"message": "the encoder ended without a word"}', 2)`,
    )
    await pool.query(
      `insert into webhooks (id, token_id, url, events, secret, created_at, failures, failing_since)
        values (gen_random_uuid(), $1, 'https://hooks.example/x', '{media.ready,media.failed}', 'plain', now(), 3, now())`,
      [tokenId],
    )
    await pool.query(
      'insert into token_days select $1, day, 40, 2, 90000 from generate_series(current_date - 9, current_date, $2) day',
      [...[tokenId, '1 day']],
    )
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  async function signedIn(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage()
    await page.goto(`${service.url}/session?next=/admin`)
    await page.fill('input[name=token]', token)
    await page.press('input[name=token]', 'Enter')
    await page.waitForURL(/\/admin$/)
    return page
  }

  const shots = process.env.ADMIN_SHOTS

  test.for([
    [320, 'light', 'en'],
    [1280, 'dark', 'de'],
  ] as const)('fit %s pixels and have no fault that axe-core finds (%s, %s)', async ([width, colorScheme, locale]) => {
    const page = await signedIn({ viewport: { width, height: 800 }, colorScheme, locale })
    for (const path of [...PAGES, `/admin/tokens/${tokenId}`]) {
      await page.goto(service.url + path)
      expect([path, await accessibilityFaults(page)]).toEqual([path, []])
      const widths = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      expect([path, await page.evaluate(widths)]).toEqual([path, 0])
      if (shots)
        await page.screenshot({
          path: `${shots}/${width}${path.replace(/\W+/g, '-').slice(0, 24)}.png`,
          fullPage: true,
        })
    }
    await page.context().close()
  })

  test('decide reports by the keyboard alone, undo, and ask before a deletion', async () => {
    const page = await signedIn()
    const hidden = async () =>
      (await service.deps.pool.query('select id from clips where hidden_at is not null')).rows.map(({ id }) => id)
    await page.waitForSelector('body[data-started]')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('h')
    await page.waitForURL(/done=hide/)
    expect(await hidden()).toEqual([clips[1]])
    await page.waitForSelector('body[data-started]')
    await page.keyboard.press('u')
    await page.waitForURL(/done=unhide/)
    expect(await hidden()).toEqual([])
    await page.waitForSelector('body[data-started]')
    await page.keyboard.press('x')
    await page.waitForSelector('dialog[open]')
    await page.keyboard.press('Escape')
    await page.keyboard.press('x')
    await page.waitForSelector('dialog[open]')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(/done=delete/)
    const { rows } = await service.deps.pool.query('select id from clips where deleted_at is not null')
    expect(rows).toEqual([{ id: clips[2] }])
    await page.context().close()
  })

  test('decide, undo and make a token without script', async () => {
    const page = await signedIn({ javaScriptEnabled: false })
    await page.click(`article:has(a[href$="${clips[0]}"]) [data-act=hide] button`)
    await page.waitForURL(/done=hide/)
    await page.click('[data-act=undo] button')
    await page.waitForURL(/done=unhide/)
    await page.goto(`${service.url}/admin/tokens`)
    await page.fill('input[name=name]', 'by hand')
    await page.click('section.narrow form > button')
    expect(await page.textContent('#secret')).toMatch(/^mh_\w{28}$/)
    await page.context().close()
  })
})
