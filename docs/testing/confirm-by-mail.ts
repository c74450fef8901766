import { expect, inject } from 'vitest'

/** Follows the link of the newest mail to this address, as its reader does; answers where it leads. */
export async function confirmByMail(address: string): Promise<URL> {
  const { inboxUrl } = inject('devServices')
  const link = await expect
    .poll(async () => (await newestMail(inboxUrl, address))?.links[0])
    .toBeTruthy()
    .then(async () => (await newestMail(inboxUrl, address))?.links[0])
  const answer = await fetch(String(link), { redirect: 'manual' })
  return new URL(String(answer.headers.get('location')))
}

async function newestMail(inboxUrl: string, address: string): Promise<{ links: string[] } | undefined> {
  const answer = await fetch(`${inboxUrl}/api/messages?to=${encodeURIComponent(address)}`)
  return ((await answer.json()) as { messages: { links: string[] }[] }).messages[0]
}
