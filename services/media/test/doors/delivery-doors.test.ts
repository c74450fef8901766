// The doors of files, where another server sends the bytes: nginx by X-Accel-Redirect, or a CDN of the bucket by a redirect. The one
// rule: the other server learns a file's name only after the service has decided that the visitor may see the clip.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { byDoor, fileDoors } from './doors.ts'
import { comparable, expectSilence, knockAtAll, pick, statusOf } from './knock.ts'
import { openRefusals, type Refusal } from './refusals.ts'
import { openStage, type Stage } from './stage.ts'
import { states } from './states.ts'

const CDN = 'https://cdn.example'
const ACCEL = '/blobs'

let stage: Stage<'nginx' | 'cdn'>
let usualAnswers: Awaited<ReturnType<typeof openRefusals>>

beforeAll(async () => {
  stage = await openStage({}, { nginx: { MEDIA_ACCEL_PREFIX: ACCEL }, cdn: { MEDIA_FILES_REDIRECT_URL: CDN } })
  await stage.makeVariants()
  usualAnswers = await openRefusals(stage, fileDoors)
})
afterAll(() => stage.close())

/** A variant that would be no smaller redirects to the file, at its public address. */
const isFile = ({ shown }: (typeof fileDoors)[number]) => shown.ready !== 302

const isSaved = ({ name }: (typeof fileDoors)[number]) => name.startsWith('saved ')

const shownStates = states.filter(({ answer }) => answer === 'shown')

describe('nginx', () => {
  test.for(shownStates)(
    '$name: it gets the name of the file, with the cache rule of the clip',
    async ({ steps, visitor }) => {
      const it = await stage.make('ready', steps)
      const answers = await knockAtAll(stage.others.nginx, stage, fileDoors, { it, visitor })
      expect(pick(answers, statusOf)).toEqual(byDoor(fileDoors, (door) => (isFile(door) ? 200 : 302)))
      for (const door of fileDoors.filter(isFile)) {
        const { text, headers } = answers[door.name] ?? {}
        expect([text, headers?.['x-accel-redirect']], door.name).toEqual(['', expect.stringMatching(/^\/blobs\/\w/)])
        expect(headers?.['cache-control'], door.name).toMatch(steps.includes('private') ? /^private, / : /^public, /)
      }
    },
  )
})

describe('a CDN of the bucket', () => {
  test.for(shownStates.filter(({ steps }) => !steps.includes('private')))(
    '$name: it sends all files but those to save',
    async ({ steps, visitor }) => {
      const it = await stage.make('ready', steps)
      const answers = await knockAtAll(stage.others.cdn, stage, fileDoors, { it, visitor })
      expect(pick(answers, statusOf)).toEqual(byDoor(fileDoors, (door) => (isSaved(door) ? 200 : 302)))
      for (const door of fileDoors.filter((door) => isFile(door) && !isSaved(door))) {
        expect(answers[door.name]?.headers.location, door.name).toMatch(/^https:\/\/cdn\.example\/\w/)
      }
    },
  )

  test('private, with a link: it sends nothing, because no link ends there', async () => {
    const it = await stage.make('ready', ['private'])
    const answers = await knockAtAll(stage.others.cdn, stage, fileDoors, { it, visitor: 'link' })
    expect(pick(answers, statusOf)).toEqual(byDoor(fileDoors, ({ shown }) => shown.ready))
    for (const [door, { headers }] of Object.entries(answers)) expect(headers.location ?? '', door).not.toContain(CDN)
  })
})

describe.for(['nginx', 'cdn'] as const)('%s', (server) => {
  test.for(states.filter(({ answer }) => answer !== 'shown'))(
    '$name: it learns nothing, and the answer is $answer as for any other clip',
    async ({ steps, visitor, answer }) => {
      const visit = { it: await stage.make('ready', steps), visitor }
      const answers = await knockAtAll(stage.others[server], stage, fileDoors, visit)
      expect(pick(answers, statusOf)).toEqual(byDoor(fileDoors, () => answer))
      expect(pick(answers, comparable)).toEqual(
        pick(await usualAnswers(stage.others[server], answer as Refusal, visit), comparable),
      )
      for (const [door, refusal] of Object.entries(answers)) expectSilence(refusal, door)
    },
  )
})
