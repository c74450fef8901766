import type { ApiDocs } from '@services/common/http/api-docs'
import type { Config } from './config.ts'
import { ICON } from './flows/pages/document.ts'
import { ProblemShape, RATE_HEADERS } from './http/shapes.ts'
import { VERSION } from './version.ts'

const EXAMPLES = {
  'POST /media/upload': {
    title: 'A cat jumps',
    tags: 'cat, jump',
    nsfw: false,
    attribution_site: '',
    attribution_user: '',
    attribution_url: '',
    visibility: 'public',
    expires_in: '',
    expires_at: '',
    sliding: false,
    start: '',
    duration: '',
    end: '',
    crop: '',
    speed: 1,
    mute: false,
    poster_at: '',
    caption: '',
    caption_position: '',
  },
  'POST /media/import': {
    source: 'https://upload.wikimedia.org/wikipedia/commons/2/2c/Rotating_earth_%28large%29.gif',
    title: 'The earth turns',
    tags: ['earth', 'space'],
  },
  'POST /media/bulk': { ids: ['EBhlMmOU', 'b8KdQzRt'], action: 'tag', tags: ['earth'] },
  'PATCH /media/{id}': { title: 'The earth turns', tags: ['earth'] },
  'POST /media/{id}/links': { expires_in: '1h' },
  'POST /gif/{id}/report': { reason: 'copyright', text: 'I made this film.', email: 'me@example.com' },
  'POST /reports/{id}': { action: 'hide', note: 'The author has proven it.' },
  'POST /media/{id}/moderation': { action: 'hide', reason: 'copyright', note: 'By letter of 12 May' },
  'POST /views': [{ id: 'EBhlMmOU', kind: 'file', day: '2026-11-28', count: 12 }],
  'POST /webhooks': { url: 'https://example.com/hooks/media', events: ['media.ready', 'media.failed'] },
  'PATCH /tokens/{id}': { name: 'ci', limits: { upload: 500, quota_bytes: 20_000_000_000 } },
  'POST /tokens': { name: 'ci', scopes: ['write', 'read'], expires_in: 2_592_000 },
}

const text = (description: string) => ({ description, schema: { type: 'string' } })
const count = (description: string) => ({ description, schema: { type: 'integer' } })

const HEADERS_OF_STATUS: Record<number, string[]> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  415: ['Accept-Encoding'],
  416: ['Content-Range'],
  429: ['Retry-After', ...RATE_HEADERS],
  503: ['Retry-After'],
}

/** Content of /docs and /openapi.json beside the schemas of the routes. */
export const apiDocs = ({ baseUrl, name }: Config['site']): ApiDocs => ({
  title: 'Media',
  version: VERSION,
  description: 'Hosts short clips as gif, jpg, mp4 and webm, with a page, an embed and oEmbed.',
  baseUrl,
  contact: { name, url: baseUrl },
  securitySchemes: {
    token: { type: 'apiKey', in: 'header', name: 'Token' },
    bearer: { type: 'http', scheme: 'bearer', description: 'The same token.' },
    gifsApiKey: { type: 'apiKey', in: 'header', name: 'Gifs-API-Key', description: 'The same token.' },
    deleteToken: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Delete-Token',
      description: 'Delete token of a clip, from the answer to its upload.',
    },
  },
  tags: ['media', 'files', 'pages', 'session', 'webhooks', 'tokens', 'moderation', 'administration', 'service'],
  requestHeaders: {
    'If-Match': text('Precondition (RFC 9110 13.1.1).'),
    'If-Modified-Since': text('Precondition (RFC 9110 13.1.3).'),
    'If-None-Match': text('ETags of copies that the caller has; 304 when one is current.'),
    'If-Range': text('ETag or date of the file; another one is sent whole (RFC 9110 13.1.5).'),
    'If-Unmodified-Since': text('Precondition (RFC 9110 13.1.4).'),
    Range: text('Parts of the file, as in `bytes=0-1023` (RFC 9110 14.2).'),
  },
  readEverywhere: [],
  answerHeaders: {
    'Accept-Encoding': text('`identity`: a body must not be compressed.'),
    'Accept-Ranges': text('`bytes`.'),
    Allow: text('Methods of the address.'),
    'Content-Disposition': text('Name under which the file is saved.'),
    'Content-Range': text('Position of the part in the file (RFC 9110 14.4).'),
    ETag: text('Version of the copy.'),
    'Idempotency-Replayed': text('`true`: the answer to an earlier request with the same key.'),
    'Last-Modified': text('Time at which the clip was added.'),
    Link: text('The next page of a list (RFC 8288).'),
    Location: { ...text('Address of the file or upload.'), required: true },
    'Preference-Applied': text('Preference that was followed (RFC 7240).'),
    'RateLimit-Limit': count('Requests that the window allows.'),
    'RateLimit-Policy': text('Requests and seconds of the window, as in `60;w=60`.'),
    'RateLimit-Remaining': count('Requests that are left.'),
    'RateLimit-Reset': count('Seconds until the window ends.'),
    'Retry-After': count('Seconds until another attempt makes sense.'),
    'Tus-Resumable': { ...text('Version of the protocol.'), required: true },
    'Tus-Version': text('Supported versions of the protocol.'),
    'Upload-Defer-Length': text('`1`: the length is not known yet.'),
    'Upload-Expires': text('Time at which an unfinished upload is deleted.'),
    'Upload-Length': count('Bytes of the whole file.'),
    'Upload-Metadata': text('Metadata as the client sent them.'),
    'Upload-Offset': count('Bytes that were received.'),
    'WWW-Authenticate': text('Authentication scheme that is required (RFC 9110 11.6.1).'),
    'X-Daily-Bytes-Limit': count('Bytes that the token may upload a day.'),
    'X-Daily-Bytes-Remaining': count('Bytes of the daily limit that were left before this request.'),
    'X-Delete-Token': text(
      'Deletes this clip alone: one that was added without a token, or with `delete-link`; shown once.',
    ),
    'X-Delete-URL': text('Page that asks, and then deletes the clip; it holds the delete token.'),
    'X-Expires-At': text('Time at which a clip that was added without a token is deleted.'),
    'X-Media': text('Result as JSON in ASCII.'),
    'X-Media-Id': text('Id of the clip.'),
    'X-Media-Ready': text('Files that are stored while the others are being made, as in `jpg, mp4`.'),
    'X-Media-State': text('`processing`, `ready` or `failed`.'),
    'X-Quota-Limit': count('Bytes that the token may store.'),
    'X-Quota-Remaining': count('Bytes of the quota that were left before this request.'),
  },
  nullIsAbsent: false,
  errors: {
    everywhere: [400, 415, 431],
    headers: (status) => HEADERS_OF_STATUS[status] ?? [],
    otherForms: { 'application/problem+json': ProblemShape },
  },
  examples: EXAMPLES,
  icon: ICON,
})
