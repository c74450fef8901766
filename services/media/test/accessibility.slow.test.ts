import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, accessibilityFaultsOfDocs } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

describe('axe-core finds no fault', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let id: string
  beforeAll(async () => {
    const port = await findFreePort()
    const base = `http://127.0.0.1:${port}`
    const settings = { MEDIA_PORT: String(port), MEDIA_BASE_URL: base, MEDIA_FILES_BASE_URL: base }
    ;[service, browser] = await Promise.all([startTestService(settings), launchBrowser()])
    id = idIn(await service.readyAlike(gif(320, 180, [{ delay: 10 }]), [['title', 'A clip']]))
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const SCHEMES = ['light', 'dark'] as const
  const PAGES = ['/', '/gif/ID', '/embed/ID', '/gif/ID/report', '/gif/unknown0', '/docs/errors']

  test.for(SCHEMES.flatMap((scheme) => PAGES.map((path) => [path, scheme] as const)))(
    'in %s (%s)',
    async ([path, colorScheme]) => {
      const page = await (await browser.newContext({ colorScheme })).newPage()
      await page.goto(service.url + path.replace('ID', id))
      expect(await accessibilityFaults(page)).toEqual([])
      await page.context().close()
    },
  )

  test.each(SCHEMES)('in /docs: closed, asking for a token and in use (%s)', async (colorScheme) => {
    const page = await (await browser.newContext({ colorScheme })).newPage()
    expect(await accessibilityFaultsOfDocs(page, `${service.url}/docs`)).toEqual({ closed: [], asking: [], inUse: [] })
  })
})
