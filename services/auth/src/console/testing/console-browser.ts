// The console in Chromium, signed in as an administrator. One service and one browser serve all tests of a file.
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { startTestService, type TestService } from '../../../test/service.ts'
import { administratorOf } from './administrator.ts'

export interface ConsoleBrowser {
  service: TestService
  url: string
  browser: Browser
  /** Opens the console in a browser of its own, with the cookies of a new administrator. */
  openConsole(options?: Parameters<Browser['newContext']>[0]): Promise<OpenConsole>
  close(): Promise<void>
}

export interface OpenConsole {
  page: Page
  admin: Awaited<ReturnType<typeof administratorOf>>
  /** Lines of the browser's console, failed requests, and requests to other hosts. */
  complaints: string[]
  /** Opens a screen and waits until its heading is there; without one, until any is. */
  open(hash: string, heading?: string): Promise<void>
}

export async function startConsoleBrowser(settings: Record<string, string> = {}): Promise<ConsoleBrowser> {
  const port = await findFreePort()
  // Browsers take this machine for as safe as TLS: the cookies are those of production, `__Host-` and Secure.
  const url = `http://localhost:${port}`
  const [service, browser] = await Promise.all([
    startTestService({
      AUTH_API_EXTERNAL_URL: url.replace('http:', 'https:'),
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_CONSOLE_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
      ...settings,
    }),
    launchBrowser(),
  ])
  await service.app.listen({ port, host: '127.0.0.1' })
  return {
    service,
    url,
    browser,
    async openConsole(options) {
      const admin = await administratorOf(service)
      const context = await browser.newContext(options)
      const cookies = admin.cookie.split('; ').map((pair) => pair.split(/=(.*)/s, 2))
      await context.addCookies(
        cookies.map(([name = '', value = '']) => ({ name, value, url: `${url.replace('http', 'https')}/` })),
      )
      const page = await context.newPage()
      const complaints: string[] = []
      page.on('console', (message) => complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(String(error)))
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== url) complaints.push(`request to ${request.url()}`)
      })
      const open = async (hash: string, heading?: string) => {
        await page.goto(`${url}/console#${hash}`)
        const name = heading === undefined ? {} : { name: heading, exact: true }
        await page.getByRole('heading', { level: 1, ...name }).waitFor()
        await page.locator('main:not([aria-busy])').waitFor()
        await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      }
      return { page, admin, complaints, open }
    },
    async close() {
      await browser.close()
      await service.close()
    },
  }
}
