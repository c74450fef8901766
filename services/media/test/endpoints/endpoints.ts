// Endpoints: every address of a clip that takes no token, with the conditions, ranges and formats that a request can
// name. An address that is new in the service is new here.
import type { LinkTarget } from '../../src/core/clip-access/share-links.ts'
import { type SourceState, signed, sourceStates } from './stage.ts'
import type { Visitor } from './states.ts'

export interface Endpoint {
  name: string
  /** Address that a link to it is signed for. */
  target: LinkTarget
  /** False where that link shows nothing: an oEmbed is more than a file. */
  linkOpens: boolean
  path: (id: string, query: string) => string
  headers: Record<string, string>
  /** Statuses of a clip that may be seen. */
  shown: Record<SourceState, number>
}

type Row = [
  name: string,
  target: LinkTarget,
  path: Endpoint['path'],
  shown: [ready: number, processing: number, failed: number],
  headers?: Record<string, string>,
]

/** Stands in headers for the ETag that a visitor has of a public clip with the same bytes. */
export const MP4_ETAG = 'the ETag of the mp4'

const HTML = { accept: 'text/html' }

const withQuery = (path: string, query: string) => path + (path.includes('?') ? query.replace('?', '&') : query)
const at = (path: string) => (id: string, query: string) => withQuery(path.replace('ID', id), query)
const signedAt = (options: string, ending: string) => (id: string, query: string) =>
  withQuery(signed(options, `${id}.${ending}`), query)
const oembedOf = (address: string) => (id: string, query: string) =>
  `/oembed?url=${encodeURIComponent(withQuery(address.replace('ID', id), query))}`

const toEndpoint = ([name, target, path, shown, headers = {}]: Row): Endpoint => ({
  ...{ name, target, path, headers },
  linkOpens: !/^oEmbed of an? (file|extra)$/.test(name),
  shown: Object.fromEntries(sourceStates.map((state, index) => [state, shown[index]])) as Endpoint['shown'],
})

/** Poster and mp4 of the processing clip are stored already. */
export const fileEndpoints: Endpoint[] = (
  [
    ['gif', 'gif', at('/f/ID.gif'), [200, 202, 404]],
    ['jpg', 'jpg', at('/f/ID.jpg'), [200, 200, 404]],
    ['mp4', 'mp4', at('/f/ID.mp4'), [200, 200, 404]],
    ['webm', 'webm', at('/f/ID.webm'), [200, 202, 404]],
    ['webp, an extra', 'webp', at('/f/ID.webp'), [200, 404, 404]],
    ['av1.mp4, an extra', 'av1', at('/f/ID.av1.mp4'), [200, 404, 404]],
    ['saved gif', 'gif', at('/f/ID.gif?download=1'), [200, 202, 404]],
    ['part of the mp4', 'mp4', at('/f/ID.mp4'), [206, 206, 404], { range: 'bytes=0-9' }],
    ['parts of the mp4', 'mp4', at('/f/ID.mp4'), [206, 206, 404], { range: 'bytes=0-9,400-409' }],
    ['part past the end', 'mp4', at('/f/ID.mp4'), [416, 416, 404], { range: 'bytes=99999999-' }],
    ['rest of a known mp4', 'mp4', at('/f/ID.mp4'), [206, 206, 404], { range: 'bytes=9-', 'if-range': MP4_ETAG }],
    ['known mp4', 'mp4', at('/f/ID.mp4'), [304, 304, 404], { 'if-none-match': MP4_ETAG }],
    ['any mp4', 'mp4', at('/f/ID.mp4'), [304, 304, 404], { 'if-none-match': '*' }],
    ['recent mp4', 'mp4', at('/f/ID.mp4'), [304, 304, 404], { 'if-modified-since': 'Fri, 31 Dec 2100 00:00:00 GMT' }],
    ['another mp4', 'mp4', at('/f/ID.mp4'), [412, 412, 404], { 'if-match': '"another"' }],
    ['old mp4', 'mp4', at('/f/ID.mp4'), [412, 412, 404], { 'if-unmodified-since': 'Sat, 01 Jan 2000 00:00:00 GMT' }],
    ['gif for a page of another site', 'gif', at('/f/ID.gif'), [200, 202, 404], { origin: 'https://other.example' }],
    ['small still', 'jpg', at('/f/ID/w160.jpg'), [200, 202, 404]],
    ['small WebP still', 'jpg', at('/f/ID/w320.webp'), [200, 202, 404]],
    ['still that is no smaller', 'jpg', at('/f/ID/w960.jpg'), [302, 202, 404]],
    ['any still', 'jpg', at('/f/ID/w160.jpg'), [304, 202, 404], { 'if-none-match': '*' }],
    ['part of a still', 'jpg', at('/f/ID/w160.jpg'), [206, 202, 404], { range: 'bytes=0-9' }],
    ['saved still', 'jpg', at('/f/ID/w160.jpg?download=1'), [200, 202, 404]],
    ['frame', 'mp4', at('/f/ID/t1.5.jpg'), [200, 202, 404]],
    ['small gif', 'gif', at('/f/ID/w240.gif'), [200, 202, 404]],
    ['small mp4', 'mp4', at('/f/ID/w480.mp4'), [200, 202, 404]],
    ['small animated WebP', 'gif', at('/f/ID/w320.anim.webp'), [200, 202, 404]],
    ['gif of eight megabytes', 'gif', at('/f/ID/max8m.gif'), [302, 202, 404]],
    ['mp4 of eight megabytes', 'mp4', at('/f/ID/max8m.mp4'), [302, 202, 404]],
    ['signed still', 'jpg', signedAt('w:160', 'jpg'), [200, 202, 404]],
    ['signed frame', 'mp4', signedAt('t:1.5', 'jpg'), [200, 202, 404]],
    ['signed gif', 'gif', signedAt('w:240', 'gif'), [200, 202, 404]],
    ['signed mp4', 'mp4', signedAt('w:480', 'mp4'), [200, 202, 404]],
    ['signed animated WebP', 'gif', signedAt('w:320,fmt:anim.webp', 'webp'), [200, 202, 404]],
  ] satisfies Row[]
).map(toEndpoint)

export const pageEndpoints: Endpoint[] = (
  [
    ['page', 'page', at('/gif/ID'), [200, 200, 404], HTML],
    ['page for a program', 'page', at('/gif/ID'), [200, 200, 404]],
    ['form of a report', 'page', at('/gif/ID/report'), [200, 200, 200], HTML],
    ['form of a report for a program', 'page', at('/gif/ID/report'), [200, 200, 200]],
    ['embed', 'embed', at('/embed/ID'), [200, 200, 404], HTML],
    ['embed for a program', 'embed', at('/embed/ID'), [200, 200, 404]],
    ['data of the element', 'page', at('/embed/ID/data'), [200, 200, 404]],
    ['data of the element with the link of the embed', 'embed', at('/embed/ID/data?of=embed'), [200, 200, 404]],
    ['oEmbed', 'oembed', at('/oembed/ID'), [200, 200, 404]],
    ['oEmbed as XML', 'oembed', at('/oembed/ID?format=xml'), [200, 200, 404]],
    ['oEmbed of a page', 'page', oembedOf('https://media.example/gif/ID'), [200, 200, 404]],
    ['oEmbed of an embed', 'embed', oembedOf('https://media.example/embed/ID'), [200, 200, 404]],
    ['oEmbed of a file', 'mp4', oembedOf('https://files.example/f/ID.mp4'), [200, 200, 404]],
    ['oEmbed of an extra', 'av1', oembedOf('https://files.example/f/ID.av1.mp4'), [200, 200, 404]],
  ] satisfies Row[]
).map(toEndpoint)

export const endpoints: Endpoint[] = [...fileEndpoints, ...pageEndpoints]

/** Endpoints that a visitor with links may see of a private clip. */
export const openTo = (visitor: Visitor, of: readonly Endpoint[]): readonly Endpoint[] =>
  visitor === 'link' ? of.filter(({ linkOpens }) => linkOpens) : of

/** A value for each endpoint, by its name. */
export const byEndpoint = <Value>(
  endpoints: readonly Endpoint[],
  of: (endpoint: Endpoint) => Value,
): Record<string, Value> => Object.fromEntries(endpoints.map((endpoint) => [endpoint.name, of(endpoint)]))
