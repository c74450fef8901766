import type { Attribution } from '../../db/tables.ts'

export interface Credit {
  label: string
  /** http(s) only; absent when there is nothing safe to link to. */
  url?: string
}

interface SocialSite {
  name: string
  profile: (user: string) => string
  handle: (user: string) => string
}

const SOCIAL_SITES: Record<string, SocialSite> = {
  twitter: { name: 'Twitter', profile: (user) => `https://x.com/${user}`, handle: (user) => `@${user}` },
  reddit: { name: 'Reddit', profile: (user) => `https://www.reddit.com/user/${user}`, handle: (user) => `u/${user}` },
  instagram: {
    name: 'Instagram',
    profile: (user) => `https://www.instagram.com/${user}/`,
    handle: (user) => `@${user}`,
  },
}

/** Author and link of a clip (contract/media.md 2.5). A custom link shows its host, so it cannot pose as another. */
export function creditOf({ site, user, url }: Attribution): Credit {
  const social = Object.hasOwn(SOCIAL_SITES, site) ? SOCIAL_SITES[site] : undefined
  if (social && user) {
    return {
      label: `${social.handle(user)} on ${social.name}`,
      url: social.profile(encodeURIComponent(user.toWellFormed())),
    }
  }
  if (social) return { label: social.name, url: webUrl(url)?.href }
  const link = webUrl(url) ?? webUrl(site)
  if (!link) return { label: user ? `${user} on ${site}` : site }
  const host = link.host.replace(/^www\./, '')
  return { label: user ? `${user} on ${host}` : host, url: link.href }
}

/** Stored URLs were checked before; a link that runs script is worth a second check. */
function webUrl(text: string | undefined): URL | undefined {
  const url = URL.parse(text ?? '')
  return url && ['http:', 'https:'].includes(url.protocol) ? url : undefined
}
