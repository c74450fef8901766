import { apiError } from '../../errors.ts'
import { facebook } from './facebook.ts'
import { giphy } from './giphy.ts'

import { imgur } from './imgur.ts'
import { instagram } from './instagram.ts'
import { reddit } from './reddit.ts'
import { defineSite, isHostOf, type Site } from './site.ts'
import { streamable } from './streamable.ts'
import { tenor } from './tenor.ts'
import { twitter } from './twitter.ts'

/** A site that has shut down: refused without a request. */
const goneSite = (name: string, host: string, ended: string): Site => ({
  ...defineSite<string>({
    name,
    hosts: [host],
    read: ({ pathname }) => (pathname === '/' ? undefined : pathname),
    find: async () => {
      throw apiError('site_gone', { details: { site: name, ended } })
    },
  }),
  isGone: true,
})

/** A new site is a file beside this one, a line here and a name in site-names.ts. */
const SITES: readonly Site[] = [
  ...[giphy, imgur, streamable, tenor, reddit, twitter, instagram, facebook],
  ...[goneSite('gfycat', 'gfycat.com', '2023-09-01'), goneSite('vine', 'vine.co', '2017-01-17')],
]

export function siteOf(url: URL): { site: Site; find: NonNullable<ReturnType<Site['open']>> } | undefined {
  for (const site of SITES) {
    const find = isHostOf(site.hosts, url) ? site.open(url) : undefined
    if (find) return { site, find }
  }
  return undefined
}
