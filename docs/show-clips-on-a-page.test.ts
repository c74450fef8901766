import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { launchBrowser } from '../packages/common/src/testing/http/browser.ts'
import { createFarServer } from '../packages/common/src/testing/http/far-server.ts'
import { makeClip } from './testing/clip.ts'
import { blocksOf, openGuide, readGuide } from './testing/guide.ts'
import { upload } from './testing/upload.ts'

const GUIDE = 'show-clips-on-a-page.md'
const { mediaUrl } = inject('devServices')

test('a page with the element shows a clip, styled, followed and under the policy of the guide', {
  tags: 'chromium',
}, async () => {
  const guide = openGuide(GUIDE)
  const { page: clipPage } = await upload(await makeClip('element'))
  const media = { 'https://media.example.com': mediaUrl }
  const id = clipPage.split('/').at(-1) as string
  const files: Record<string, [type: string, text: string]> = {
    '/': ['text/html', guide.file('page.html', { ...media, ID: id })],
    '/page.css': ['text/css', guide.file('page.css')],
    '/page.js': ['text/javascript', guide.file('page.js')],
  }
  const directives = blocksOf(readGuide(GUIDE)).find(({ text }) => text.includes('connect-src'))?.text ?? ''
  const policy = `default-src 'none'; style-src 'self'; ${directives.replaceAll('https://media.example.com', mediaUrl)}`
  const site = createFarServer(async ({ url = '' }, response) => {
    // A slow network: the element must not play before the page listens.
    if (url === '/page.js') await sleep(1_000)
    const [type, text] = files[url] ?? ['text/plain', '']
    const headers = { 'content-type': type, 'content-security-policy': policy.replaceAll('\n', ' ') }
    response.writeHead(files[url] ? 200 : 404, headers).end(text)
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  onTestFinished(() => void site.close())

  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 500, height: 600 } })
  const said: string[] = []
  page.on('console', (message) => said.push(message.text()))
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
  await expect.poll(() => said).toContain(`plays ${mediaUrl}/gif/${id}`)
  const shown = await page.locator('media-clip [part=frame]').boundingBox()
  expect(shown).toMatchObject({ width: 484, height: expect.closeTo((484 * 360) / 640, 0) })
  expect(said.filter((text) => /policy|cannot/i.test(text))).toEqual([])
  expect(guide.untaken()).toEqual([])
})
