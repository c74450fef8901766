import { expect, inject } from 'vitest'

/** Follows the link of the newest mail to this address, as its reader does; returns the redirect's target. */
export async function confirmByMail(address: string): Promise<URL> {
  const answer = await fetch(await linkOfMail(address), { redirect: 'manual' })
  return new URL(String(answer.headers.get('location')))
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
