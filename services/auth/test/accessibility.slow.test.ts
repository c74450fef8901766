import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, accessibilityFaultsOfDocs } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'

describe('axe-core finds no fault', { tags: 'chromium' }, () => {
  let service: TestService
  let browser: Browser
  let url: string
  beforeAll(async () => {
    const port = await findFreePort()
    url = `http://127.0.0.1:${port}`
    ;[service, browser] = await Promise.all([startTestService({ AUTH_API_EXTERNAL_URL: url }), launchBrowser()])
    await service.app.listen({ port, host: '127.0.0.1' })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  test.each(['light', 'dark'] as const)(
    'in the start page, and /docs closed, asking for a token and in use (%s)',
    async (colorScheme) => {
      const page = await (await browser.newContext({ colorScheme })).newPage()
      await page.goto(url)
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await accessibilityFaultsOfDocs(page, `${url}/docs`)).toEqual({ closed: [], asking: [], inUse: [] })
    },
  )
})
