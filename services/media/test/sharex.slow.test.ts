import { findFreePort } from '@services/common/dev/dev-ports'
import { launchBrowser } from '@services/common/testing/http/browser'
import { expect, onTestFinished, test } from 'vitest'
import { clip } from './clips.ts'
import { startTestService } from './service.ts'

test('a person who opens a delete link is asked first; the token is sent only with the deletion, and in no address', {
  tags: 'chromium',
}, async () => {
  const port = await findFreePort()
  const base = `http://127.0.0.1:${port}`
  const service = await startTestService({
    ...{ MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base },
  })
  onTestFinished(() => service.close())
  const added = await service.upload(await clip('plain.gif'), [], { prefer: 'delete-link' })
  const url = added.headers.get('x-delete-url') as string
  const [address = '', token = ''] = url.split('#')

  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const requests: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`))
  page.on('console', (message) => complaints.push(message.text()))
  await page.goto(address)
  expect(await page.getByRole('button').count()).toBe(0)
  expect(await page.textContent('[role=status]')).toContain('not complete')

  await page.goto(`${address}#md_wrong`)
  await page.reload()
  await page.getByRole('button', { name: 'Delete it for good' }).click()
  await page.waitForSelector('[role=status]:text("not valid")')
  await page.goto(url)
  await page.reload()
  expect((await service.get(added.body.success.page)).status).toBe(200)
  await page.getByRole('button', { name: 'Delete it for good' }).press('Enter')
  await page.waitForSelector('[role=status]:text("The clip was deleted.")')
  expect((await service.get(added.body.success.page)).status).toBe(410)
  expect(requests.filter((request) => request.includes(token) && !request.includes('#'))).toEqual([])
  expect(requests.filter((request) => request.startsWith('DELETE'))).toHaveLength(2)
  expect(complaints.filter((text) => /policy|refused/i.test(text))).toEqual([])
})
