// Links and endpoints: addresses that each link opens, and further addresses of the clip that the answers sign.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LinkTarget } from '../../src/core/clip-access/share-links.ts'
import { byEndpoint, type Endpoint, endpoints, openTo } from './endpoints.ts'
import { type EndpointAnswer, requestEndpoint } from './request-endpoints.ts'
import { openStage, type Stage, type StagedClip } from './stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
  await stage.makeVariants()
})
afterAll(() => stage.close())

/** Addresses that the answers to a link sign, its own among them. */
const SIGNED: Record<LinkTarget, readonly LinkTarget[]> = {
  page: ['page', 'embed', 'gif', 'jpg', 'mp4', 'webm', 'av1', 'webp'],
  oembed: ['embed', 'jpg'],
  embed: ['embed', 'gif', 'jpg', 'mp4', 'webm', 'av1', 'webp'],
  gif: ['gif'],
  jpg: ['jpg'],
  mp4: ['mp4'],
  webm: [],
  av1: [],
  webp: [],
}
const targets = Object.keys(SIGNED) as LinkTarget[]

const signatureOf = ({ links }: StagedClip, target: LinkTarget) =>
  new URLSearchParams(links[target]).get('s') ?? 'none was made'

/** A signature is the same in every encoding. */
const isIn = ({ text, headers }: EndpointAnswer, signature: string) =>
  text.includes(signature) || JSON.stringify(headers).includes(signature)

/** Addresses stand in attributes, in JSON, and in the code of an embed, which is text of a page. */
const decode = (text: string) =>
  text.replaceAll('&amp;', '&').replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('\\"', '"')

async function requestWith(it: StagedClip, link: LinkTarget): Promise<[Endpoint, EndpointAnswer][]> {
  return Promise.all(
    endpoints.map(async (endpoint): Promise<[Endpoint, EndpointAnswer]> => {
      const { path, headers } = endpoint
      return [endpoint, await requestEndpoint(stage.service, 'GET', path(it.id, it.links[link] ?? ''), headers)]
    }),
  )
}

test.for(targets)('a link to %s opens its own address alone, and signs nothing above it', async (link) => {
  const it = await stage.make('ready', ['private'])
  const answers = await requestWith(it, link)
  const opened = answers.map(([{ name }, { status }]) => [name, status === 404 ? 'unknown' : 'opened'])
  const open = openTo('link', endpoints)
  expect(Object.fromEntries(opened)).toEqual(
    byEndpoint(endpoints, (endpoint) => (endpoint.target === link && open.includes(endpoint) ? 'opened' : 'unknown')),
  )
  const signed = targets.filter((target) => answers.some(([, answer]) => isIn(answer, signatureOf(it, target))))
  expect(signed.toSorted()).toEqual(SIGNED[link].toSorted())
})

test('every address in the answers to a link opens', async () => {
  const it = await stage.make('ready', ['private'])
  for (const link of ['page', 'oembed', 'embed'] as const) {
    for (const [{ name }, { text }] of await requestWith(it, link)) {
      const plain = decode(text.replace(/<link rel="canonical".*/, ''))
      const urls = plain.match(/https:\/\/[^"'<>\s]+/g) ?? []
      const paths = urls.filter((url) => url.includes(it.id)).map((url) => url.replace(/^https:\/\/[^/]+/, ''))
      for (const path of new Set(paths)) {
        const { status } = await requestEndpoint(stage.service, 'GET', path)
        expect([link, name, path, status]).toEqual([link, name, path, 200])
      }
    }
  }
})

test('the oEmbed of a private clip may be kept no longer than its link, or than the clip', async () => {
  const it = await stage.make('ready', ['private'])
  const ageOf = async (path: string) => JSON.parse((await requestEndpoint(stage.service, 'GET', path)).text).cache_age
  const linked = `/oembed/${it.id}${it.links.oembed}`
  expect(await ageOf(linked)).toBeLessThanOrEqual(3600)
  await stage.steps['half an hour later']()
  expect(await ageOf(linked)).toBeLessThanOrEqual(1800)
  expect(await ageOf(linked)).toBeGreaterThan(1700)
  const open = await stage.make('ready', ['public', 'of a minute'])
  expect(await ageOf(`/oembed/${open.id}`)).toBe(60)
})
