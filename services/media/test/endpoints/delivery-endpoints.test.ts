// The endpoints of files, where another server sends the bytes: nginx by X-Accel-Redirect, or a CDN of the bucket by a
// redirect. The other server learns a file's name only after the service has decided that the visitor may see the clip.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { byEndpoint, fileEndpoints } from './endpoints.ts'
import { openRefusals, type Refusal } from './refusals.ts'
import { comparable, expectSilence, pick, requestAll, statusOf } from './request-endpoints.ts'
import { openStage, type Stage } from './stage.ts'
import { states } from './states.ts'

const CDN = 'https://cdn.example'
const ACCEL = '/blobs'

let stage: Stage<'nginx' | 'cdn'>
let usualAnswers: Awaited<ReturnType<typeof openRefusals>>

beforeAll(async () => {
  stage = await openStage({}, { nginx: { MEDIA_ACCEL_PREFIX: ACCEL }, cdn: { MEDIA_FILES_REDIRECT_URL: CDN } })
  await stage.makeVariants()
  usualAnswers = await openRefusals(stage, fileEndpoints)
})
afterAll(() => stage.close())

/** A variant that would be no smaller redirects to the file, at its public address. */
const isFile = ({ shown }: (typeof fileEndpoints)[number]) => shown.ready !== 302

const isSaved = ({ name }: (typeof fileEndpoints)[number]) => name.startsWith('saved ')

const shownStates = states.filter(({ answer }) => answer === 'shown')

describe('nginx', () => {
  test.for(shownStates)(
    '$name: it gets the name of the file, with the cache rule of the clip',
    async ({ steps, visitor }) => {
      const it = await stage.make('ready', steps)
      const answers = await requestAll(stage.others.nginx, stage, fileEndpoints, { it, visitor })
      expect(pick(answers, statusOf)).toEqual(byEndpoint(fileEndpoints, (endpoint) => (isFile(endpoint) ? 200 : 302)))
      for (const endpoint of fileEndpoints.filter(isFile)) {
        const { text, headers } = answers[endpoint.name] ?? {}
        expect([text, headers?.['x-accel-redirect']], endpoint.name).toEqual([
          '',
          expect.stringMatching(/^\/blobs\/\w/),
        ])
        expect(headers?.['cache-control'], endpoint.name).toMatch(
          steps.includes('private') ? /^private, / : /^public, /,
        )
      }
    },
  )
})

describe('a CDN of the bucket', () => {
  test.for(shownStates.filter(({ steps }) => !steps.includes('private')))(
    '$name: it sends all files but those to save',
    async ({ steps, visitor }) => {
      const it = await stage.make('ready', steps)
      const answers = await requestAll(stage.others.cdn, stage, fileEndpoints, { it, visitor })
      expect(pick(answers, statusOf)).toEqual(byEndpoint(fileEndpoints, (endpoint) => (isSaved(endpoint) ? 200 : 302)))
      for (const endpoint of fileEndpoints.filter((endpoint) => isFile(endpoint) && !isSaved(endpoint))) {
        expect(answers[endpoint.name]?.headers.location, endpoint.name).toMatch(/^https:\/\/cdn\.example\/\w/)
      }
    },
  )

  test('private, with a link: it sends nothing, because no link ends there', async () => {
    const it = await stage.make('ready', ['private'])
    const answers = await requestAll(stage.others.cdn, stage, fileEndpoints, { it, visitor: 'link' })
    expect(pick(answers, statusOf)).toEqual(byEndpoint(fileEndpoints, ({ shown }) => shown.ready))
    for (const [endpoint, { headers }] of Object.entries(answers))
      expect(headers.location ?? '', endpoint).not.toContain(CDN)
  })
})

describe.for(['nginx', 'cdn'] as const)('%s', (server) => {
  test.for(states.filter(({ answer }) => answer !== 'shown'))(
    '$name: it learns nothing, and the answer is $answer as for any other clip',
    async ({ steps, visitor, answer }) => {
      const visit = { it: await stage.make('ready', steps), visitor }
      const answers = await requestAll(stage.others[server], stage, fileEndpoints, visit)
      expect(pick(answers, statusOf)).toEqual(byEndpoint(fileEndpoints, () => answer))
      expect(pick(answers, comparable)).toEqual(
        pick(await usualAnswers(stage.others[server], answer as Refusal, visit), comparable),
      )
      for (const [endpoint, refusal] of Object.entries(answers)) expectSilence(refusal, endpoint)
    },
  )
})
