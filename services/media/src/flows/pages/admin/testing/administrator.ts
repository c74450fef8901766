// A browser of an administrator, for tests of the pages.
import type { TestService } from '../../../../../test/service.ts'

export interface Administrator {
  id: string
  token: string
  cookie: string
  /** Requests a page. */
  get(path: string, headers?: Record<string, string>): ReturnType<TestService['get']>
  /** Sends a form of a page of this session, as a browser without script. */
  post(path: string, fields?: Record<string, string>, headers?: Record<string, string>): ReturnType<TestService['call']>
}

const OWN = { 'sec-fetch-site': 'same-origin' }

export async function asAdministrator(
  service: TestService,
  scopes: Parameters<TestService['newToken']>[0] = { scopes: ['admin'] },
): Promise<Administrator> {
  const { token, id } = await service.newToken(scopes)
  const { headers } = await service.call('POST', '/session', { headers: { ...OWN, token } })
  const cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const own = { ...OWN, cookie, accept: 'text/html' }
  const { text } = await service.get('/session', own)
  const [, formToken = ''] = /name="form_token" value="([^"]+)"/.exec(text) ?? []
  return {
    ...{ id, token, cookie },
    get: (path, more = {}) => service.get(path, { ...own, ...more }),
    post: (path, fields = {}, more = {}) =>
      service.call('POST', path, {
        headers: { ...own, ...more },
        body: new URLSearchParams({ form_token: formToken, ...fields }),
      }),
  }
}

export const PAGES = [
  '/admin',
  '/admin?state=closed',
  '/admin/clips',
  '/admin/tokens',
  '/admin/queue',
  '/admin/webhooks',
  '/admin/storage',
  '/admin/settings',
  '/admin/audit',
] as const
