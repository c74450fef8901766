import { openBrowser } from './demo-browser.ts'
import { call, expectStatus, unexpected } from './demo-call.ts'

export type Report = (step: string, detail: string) => void

/** Presses the button of the page between the link of a mail and its effect. */
export async function confirmOnPage(link: string, report: Report): Promise<void> {
  const browser = openBrowser()
  const page = await browser.open(link)
  report('GET /ui/confirm', 'a page with a button: scanners of mail confirm nothing')
  report('POST /ui/confirm', `leads to ${placeOf(await browser.press(page))}, signed in`)
}

type Account = { authUrl: string; email: string; password: string; report: Report }

/** Signs in on the hosted pages, in a browser that was never here, and opens the account. */
export async function signInOnPages({ authUrl, email, password, report }: Account): Promise<void> {
  if (!(await isServed(`${authUrl}/ui/sign-in`)))
    return report('GET /ui/sign-in', 'left out: the hosted pages are disabled')
  const browser = openBrowser()
  const first = await browser.open(`${authUrl}/ui/sign-in`)
  report('GET /ui/sign-in', `open ${authUrl}/ui/sign-in: it asks for the address first`)
  const second = await browser.open(await browser.press(first, { address: email }))
  if (!second.text.includes('type="password"')) throw unexpected(second, 'a page with a password field', second.text)
  const target = await browser.press(second, { address: email, password })
  report('POST /ui/sign-in', `leads to ${placeOf(target)}, signed in`)
  const account = await browser.open(`${authUrl}/ui/account`)
  if (!account.text.includes(email)) throw unexpected(account, `a page with ${email}`, account.text)
  report('GET /ui/account', `the account page of ${email}`)
}

/** Shows where the console is, and the command that makes its first administrator. */
export async function showConsole(authUrl: string, commandLine: string, report: Report): Promise<void> {
  if (!(await isServed(`${authUrl}/console`))) return
  report('GET /console', `open ${authUrl}/console as an administrator; this makes one:`)
  report('', `${commandLine} admin create --email you@example.com`)
}

/** Whether a page is there; settings may leave it out. */
async function isServed(url: string): Promise<boolean> {
  const answer = await call('GET', url)
  if (answer.status === 404) return false
  expectStatus(answer, 200)
  return true
}

/** Address without query and fragment, which hold tokens. */
const placeOf = ({ origin, pathname }: URL) => origin + pathname
