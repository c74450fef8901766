import { isIP } from 'node:net'

export type HostRule = (url: URL) => boolean

/**
 * Permits the site of the manifest, and the hosts and subdomains that the site's resolver allows. Otherwise a manifest
 * could make us send 200 requests to any host.
 */
export const hostRule =
  (own: readonly URL[], allowedHosts: readonly string[] = []): HostRule =>
  (url) =>
    /^https?:$/.test(url.protocol) &&
    (own.some((one) => siteOf(one.hostname) === siteOf(url.hostname)) ||
      allowedHosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`)))

/**
 * The registrable domain: two labels, or three below short ones such as `co.uk`. Without the list of public suffixes,
 * neighbours below `github.io` count as one site, which costs them a few requests at most.
 */
function siteOf(hostname: string): string {
  if (isIP(hostname.replace(/^\[|\]$/g, ''))) return hostname
  const labels = hostname.replace(/\.$/, '').split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(second.length <= 3 && top.length === 2 ? -3 : -2).join('.')
}
