import type { ApiDocs } from '@services/common/api-docs'
import { ICON } from './pages/icon.ts'
import { VERSION } from './version.ts'

const EXAMPLES = {
  'POST /media/upload': {
    title: 'A cat jumps',
    tags: 'cat, jump',
    nsfw: false,
    attribution_site: '',
    attribution_user: '',
    attribution_url: '',
  },
  'POST /media/import': {
    source: 'https://upload.wikimedia.org/wikipedia/commons/2/2c/Rotating_earth_%28large%29.gif',
    title: 'The earth turns',
    tags: ['earth', 'space'],
  },
  'PATCH /media/{id}': { title: 'The earth turns', tags: ['earth'] },
  'POST /webhooks': { url: 'https://example.com/hooks/media', events: ['media.ready', 'media.failed'] },
  'POST /tokens': { name: 'ci', scopes: ['write', 'read'], expires_in: 2_592_000 },
}

/** Content of /docs and /openapi.json that no route's schema has. */
export const apiDocs = (baseUrl: string): ApiDocs => ({
  title: 'Media',
  version: VERSION,
  description: 'Hosts short clips as gif, jpg, mp4 and webm, with a page, an embed and oEmbed.',
  baseUrl,
  securitySchemes: { token: { type: 'apiKey', in: 'header', name: 'Token' } },
  tags: ['media', 'files', 'pages', 'webhooks', 'tokens', 'service'],
  examples: EXAMPLES,
  icon: ICON,
})
