import { apiError } from '../../errors.ts'

type Reason = 'not_found' | 'refused' | 'rate_limited' | 'not_ready' | 'changed'

const failed = (site: string, upstream: '4xx' | '5xx' | 'bad_response', reason?: Reason) =>
  apiError('source_fetch_failed', { details: { upstream, site, reason } })

/** Also for a hidden post that the site reports as missing. */
export const notFound = (site: string) => failed(site, '4xx', 'not_found')

export const notReady = (site: string) => failed(site, 'bad_response', 'not_ready')

/** An unknown kind of answer: the site was rebuilt, or shows a wall. */
export const changed = (site: string) => failed(site, 'bad_response', 'changed')

export const loginRequired = (site: string) => apiError('site_login_required', { details: { site } })

export const noClip = (site: string) => apiError('unsupported_site_content', { details: { site } })

/** MEDIA_IMPORT_SITES omits the site; generic discovery is not tried either. */
export const switchedOff = (site: string) =>
  apiError('unsupported_site_content', { details: { site, reason: 'switched_off' } })

export function requireAnswer(site: string, { status }: { status: number }): void {
  if (status === 200) return
  if (status === 401) throw loginRequired(site)
  if (status === 404 || status === 410) throw notFound(site)
  if (status === 429) throw failed(site, '4xx', 'rate_limited')
  if (status >= 400 && status < 500) throw failed(site, '4xx', 'refused')
  if (status >= 500) throw failed(site, '5xx')
  throw changed(site)
}
