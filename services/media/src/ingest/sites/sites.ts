import { facebook } from './facebook.ts'
import { giphy } from './giphy.ts'
import { gfycat, vine } from './gone-sites.ts'
import { imgur } from './imgur.ts'
import { instagram } from './instagram.ts'
import { reddit } from './reddit.ts'
import { isHostOf, type Site } from './site.ts'
import { streamable } from './streamable.ts'
import { tenor } from './tenor.ts'
import { twitter } from './twitter.ts'

/** A new site is a file beside this one, a line here and a name in site-names.ts. */
const SITES: readonly Site[] = [giphy, imgur, streamable, tenor, reddit, twitter, instagram, facebook, gfycat, vine]

export function siteOf(url: URL): { site: Site; find: NonNullable<ReturnType<Site['open']>> } | undefined {
  for (const site of SITES) {
    const find = isHostOf(site.hosts, url) ? site.open(url) : undefined
    if (find) return { site, find }
  }
  return undefined
}
