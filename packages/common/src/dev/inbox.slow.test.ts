import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessibilityFaults } from '../testing/http/accessibility.ts'
import { type Browser, launchBrowser, type Page } from '../testing/http/browser.ts'
import { createMessages } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'

const mail = (head: string) =>
  Buffer.from(
    `Subject: x\r\nContent-Type: text/html\r\n\r\n<!doctype html><html><head>${head}</head><body></body></html>`,
  )

describe('in a browser', { tags: 'chromium' }, () => {
  let browser: Browser
  let url: string
  let receivedAt: string
  const messages = createMessages()
  let web: Awaited<ReturnType<typeof createInboxWeb>>

  beforeAll(async () => {
    web = await createInboxWeb(messages, 'smtp://127.0.0.1:1025')
    for (const head of ['', '<meta name="color-scheme" content="light dark">']) {
      await messages.add(mail(head), { from: 'app@example.com', to: ['ada@example.com'] })
    }
    receivedAt = messages.find(1)?.receivedAt ?? ''
    url = await web.listen({ port: 0, host: '127.0.0.1' })
    browser = await launchBrowser()
  })

  afterAll(async () => {
    await browser?.close()
    await web?.close()
  })

  test.each([
    ['a mail without dark styles stays a white sheet', 1, 'dark', { border: 'dark', mail: 'white' }],
    ['a mail with dark styles is dark', 2, 'dark', { border: 'dark', mail: 'dark' }],
    ['a mail with dark styles is white', 2, 'light', { border: 'light', mail: 'white' }],
  ] as const)('%s (message %i) in an inbox that is %s', async (_, id, colorScheme, expected) => {
    const context = await browser.newContext({ colorScheme })
    const page = await context.newPage()
    await page.goto(`${url}/messages/${id}?view=html`)
    await expect.poll(() => lookOfFrame(page)).toEqual(expected)
    await context.close()
  })

  test.each(['/', '/messages/1', '/messages/2?view=html', '/messages/1?view=text'])(
    'axe-core finds no fault in %s',
    async (path) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await browser.newPage({ colorScheme })
        await page.goto(url + path)
        expect(await accessibilityFaults(page)).toEqual([])
        await page.close()
      }
    },
  )

  test('times are those of the reader, with UTC as their title', async () => {
    const page = await browser.newPage({ timezoneId: 'Asia/Kathmandu', locale: 'en-GB' })
    await page.goto(`${url}/messages/1`)
    const time = page.locator('main time')
    const local = new Date(Date.parse(receivedAt) + 5.75 * 3_600_000).toISOString().slice(11, 19)
    await expect.poll(() => time.textContent()).toContain(`${local} GMT+5:45`)
    const utc = `${receivedAt.slice(0, 19).replace('T', ' ')} UTC`
    expect(await time.getAttribute('title')).toBe(utc)
    expect(await page.locator('#list time').first().getAttribute('title')).toMatch(/ UTC$/)
    await page.close()
  })
})

/**
 * Whether the border around the mail and the middle of the mail are white, light or dark, by the pixels of a
 * screenshot.
 */
async function lookOfFrame(page: Page): Promise<unknown> {
  const shot = (await page.locator('iframe').screenshot()).toString('base64')
  return page.evaluate(`(async () => {
    const image = new Image()
    image.src = 'data:image/png;base64,${shot}'
    await image.decode()
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
    context.drawImage(image, 0, 0)
    const lookAt = (x) => {
      const [red] = context.getImageData(x, image.height / 2, 1, 1).data
      return red === 255 ? 'white' : red > 127 ? 'light' : 'dark'
    }
    return { border: lookAt(0), mail: lookAt(image.width / 2) }
  })()`)
}
