import { parseCidrs } from '@services/common/config/cidrs'
import { baseUrl, list, parsed, text, type Values, type Variables } from '@services/common/config/variables'
import { SITE_NAMES } from '../ingest/sites/site-names.ts'
import type { serverVariables } from './server.ts'

export const importVariables = {
  IMPORT_ALLOW_CIDRS: parsed(
    'list',
    'Private networks that imports may reach, on any port.',
    { default: '' },
    parseCidrs,
  ),
  IMPORT_PORTS: parsed('list', 'Ports of public servers that imports may reach.', { default: '80,443' }, parsePorts),
  EGRESS_DENY_CIDRS: parsed('list', 'Public networks that imports must not reach.', { default: '' }, parseCidrs),

  IMPORT_SITES: parsed(
    'list',
    'Sites whose pages are imported; `other` means all other pages, `none` files only.',
    { default: SITE_NAMES.join() },
    parseSites,
  ),
  IMPORT_SITE_BASES: parsed(
    'list',
    'Base URLs to use in place of hosts, `host=URL`: a mirror, or a test server.',
    { default: '' },
    parseBases,
  ),
  GIPHY_API_KEY: text('Key of the GIPHY API, for titles, names and ratings; without it clips lack these.', {
    secret: true,
  }),
  IMGUR_CLIENT_ID: text('Client id of an application registered at imgur, for albums, titles and names.', {
    secret: true,
  }),
  REDDIT_CLIENT_ID: text('Client id of an application registered at reddit, which refuses many servers without one.'),
  REDDIT_CLIENT_SECRET: text('Client secret of the application registered at reddit.', { secret: true }),

  YTDLP_PATH: text(
    'Path of yt-dlp, for pages that only it understands, such as instagram and facebook; without it these are refused.',
  ),
  YTDLP_COOKIES: text(
    'File with cookies for yt-dlp in the Netscape format, which give it the access of their account.',
  ),
} satisfies Variables

export const importSettings = (values: Values<typeof importVariables & typeof serverVariables>) => ({
  egress: {
    allowCidrs: values.IMPORT_ALLOW_CIDRS,
    denyCidrs: values.EGRESS_DENY_CIDRS,
    ports: values.IMPORT_PORTS,
    ownPort: values.PORT,
    ownUrls: [values.BASE_URL, values.FILES_BASE_URL ?? values.BASE_URL],
    standIns: values.IMPORT_SITE_BASES,
  },
  sites: {
    enabled: values.IMPORT_SITES,
    keys: {
      giphyApiKey: values.GIPHY_API_KEY,
      imgurClientId: values.IMGUR_CLIENT_ID,
      redditClientId: values.REDDIT_CLIENT_ID,
      redditClientSecret: values.REDDIT_CLIENT_SECRET,
    },
  },
  ytdlp: { path: values.YTDLP_PATH, cookies: values.YTDLP_COOKIES },
})

function parsePorts(value: string): number[] {
  const ports = (list('').parse(value) as string[]).map(Number)
  if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw new Error('must be a comma-separated list of ports')
  }
  return ports
}

function parseSites(value: string): string[] {
  const names = (list('').parse(value) as string[]).filter((name) => name !== 'none')
  const known: readonly string[] = SITE_NAMES
  if (!names.every((name) => known.includes(name))) throw new Error(`must be none, or a list of ${known.join(', ')}`)
  return names
}

function parseBases(value: string): Map<string, string> {
  const pairs = (list('').parse(value) as string[]).map((pair) => /^([^=/@\s]+)=(.+)$/.exec(pair))
  return new Map(
    pairs.map((pair) => {
      if (!pair?.[1] || !pair[2]) throw new Error('must be a comma-separated list of host=URL')
      return [pair[1].toLowerCase(), baseUrl('').parse(pair[2]) as string]
    }),
  )
}
