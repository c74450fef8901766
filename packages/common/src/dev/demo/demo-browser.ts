import { type Answer, call, expectStatus, unexpected } from './demo-call.ts'

export type DemoBrowser = ReturnType<typeof openBrowser>
export type DemoPage = Answer & { url: string }

/** A browser without scripts: cookies, the form of a page, and redirects after a form. */
export function openBrowser() {
  const cookies = new Map<string, string>()

  async function send(method: string, url: string, body?: URLSearchParams): Promise<DemoPage> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await call(method, url, { headers: { cookie }, ...(body && { body }) })
    for (const set of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = set.split(';', 1)[0]?.split(/=(.*)/s, 2) ?? []
      cookies.set(name, value)
    }
    return { ...answer, url }
  }

  return {
    async open(url: string | URL): Promise<DemoPage> {
      const page = await send('GET', String(url))
      expectStatus(page, 200)
      return page
    },
    /** Sends the first form of a page with its hidden fields and the typed ones; returns where the answer leads. */
    async press(page: DemoPage, typed: Record<string, string> = {}): Promise<URL> {
      const [form = ''] = /<form method="post".*?<\/form>/s.exec(page.text) ?? []
      const hidden = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
      const fields = hidden.map(([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')] as const)
      const body = new URLSearchParams({ ...Object.fromEntries(fields), ...typed })
      const answer = await send('POST', page.url.split('?', 1)[0] as string, body)
      // The way to another host is a page that goes there: browsers refuse a redirect there after a form.
      const target =
        answer.headers.get('location') ?? /http-equiv="refresh" content="0;url=([^"]*)"/.exec(answer.text)?.[1]
      if (target === undefined) throw unexpected(answer, 'a way on', `${answer.status} ${answer.text}`)
      return new URL(target, page.url)
    },
  }
}
