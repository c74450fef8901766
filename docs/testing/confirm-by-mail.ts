import { expect, inject } from 'vitest'

/** Follows the link of the newest mail to this address and presses the button behind it, as its reader does. */
export async function confirmByMail(address: string): Promise<void> {
  const page = await fetch(await linkOfMail(address))
  const form = new URLSearchParams()
  const fields = /<input type="hidden" name="([^"]*)" value="([^"]*)">/g
  for (const [, name = '', value = ''] of (await page.text()).matchAll(fields)) {
    form.append(name, value.replaceAll('&amp;', '&'))
  }
  const cookie = page.headers.getSetCookie().map((each) => each.split(';', 1)[0])
  const answer = await fetch(page.url, { method: 'POST', body: form, headers: { cookie: cookie.join('; ') } })
  expect(answer.status).toBe(200)
}

/** Waits for a mail to this address; returns the link of the newest one. */
export async function linkOfMail(address: string): Promise<string> {
  const { inboxUrl } = inject('devServices')
  const find = async () => (await newestMail(inboxUrl, address))?.links[0]
  await expect.poll(find).toBeTruthy()
  return String(await find())
}

async function newestMail(inboxUrl: string, address: string): Promise<{ links: string[] } | undefined> {
  const answer = await fetch(`${inboxUrl}/api/messages?to=${encodeURIComponent(address)}`)
  return ((await answer.json()) as { messages: { links: string[] }[] }).messages[0]
}
