/** Builds a mail's link. The path of the base stays (`/auth/v1` + `/verify`) unless the setting repeats it. */
export function actionLink(
  externalUrl: string,
  path: string,
  link: { token: string; type: string; redirectTo: string },
): string {
  const base = new URL(externalUrl)
  const basePath = base.pathname.replace(/\/$/, '')
  const isWhole = /^https?:\/\//.test(path)
  const repeatsBase = basePath !== '' && path.startsWith(`${basePath}/`)
  const joined = `${repeatsBase ? '' : basePath}/${path.replace(/^\//, '')}`
  const url = isWhole ? new URL(path) : new URL(joined, base.origin)
  url.search = `token=${encodeURIComponent(link.token)}&type=${link.type}&redirect_to=${asGiven(link.redirectTo)}`
  return url.href
}

/** Escapes only characters that would end the parameter or be decoded, so that targets stay readable (RFC 3986 3.4). */
const asGiven = (target: string) => encodeURIComponent(target).replace(/%(?:3A|2F|40|2C|24)/g, decodeURIComponent)
