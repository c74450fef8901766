import { isIP } from 'node:net'

/** Whether a manifest may send us there. */
export type HostRule = (url: URL) => boolean

/**
 * A manifest may name what is of its own site, and what the resolver that knows the site allows (a name stands for itself
 * and all below it). Else whoever writes one chooses whom we ask two hundred times.
 */
export const hostRule =
  (own: readonly URL[], allowedHosts: readonly string[] = []): HostRule =>
  (url) =>
    /^https?:$/.test(url.protocol) &&
    (own.some((one) => siteOf(one.hostname) === siteOf(url.hostname)) ||
      allowedHosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`)))

/**
 * What one party registers: two labels, or three below `co.uk` and the like, which are told by their shortness. Without
 * the list of public suffixes: neighbours below `github.io` count as one, and that costs nobody more than a request.
 */
function siteOf(hostname: string): string {
  if (isIP(hostname.replace(/^\[|\]$/g, ''))) return hostname
  const labels = hostname.replace(/\.$/, '').split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(second.length <= 3 && top.length === 2 ? -3 : -2).join('.')
}
