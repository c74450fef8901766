import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, launchBrowser } from '../testing/browser.ts'
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
