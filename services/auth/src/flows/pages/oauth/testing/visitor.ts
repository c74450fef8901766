// A user at the pages that answer applications, for their tests.
import { randomUUID } from 'node:crypto'
import type { TestService } from '../../../../../test/service.ts'
import { openPage, type SeenPage, send } from '../../testing/pages.ts'

const PASSWORD = 'correct horse'

/** A new user with a browser that is not signed in yet. */
export async function visitor(service: TestService, headers: Record<string, string> = {}) {
  const browser = service.otherBrowser()
  const email = `${randomUUID()}@example.com`
  const { userId, auth } = await service.signedIn(email, PASSWORD)
  const press = (page: SeenPage, fields: Record<string, string> = {}, label?: string) =>
    send(browser, page, fields, { headers, ...(label !== undefined && { press: label }) })
  return {
    ...{ browser, email, userId, auth, press },
    open: (address: string) => openPage(browser, address, headers),
    /** Signs in on the page that asks for the address. */
    signIn: async (page: SeenPage) => press(await press(page, { address: email }), { password: PASSWORD }),
  }
}
